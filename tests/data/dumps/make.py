"""Makes the files of this folder: one real attention call (step 10, layer 2 of samples/moving-shapes,
heads 0 and 1, the first 96 tokens) in the forms in which people dump such tensors.

    python3 make.py ../../../samples/moving-shapes/step10_layer02.safetensors

Needs torch, numpy, h5py, safetensors.
"""
import sys

import h5py
import numpy as np
import torch
from safetensors.torch import load_file, save_file

call = load_file(sys.argv[1])
q, k, v = (call[name][:, :2, :96].contiguous() for name in "qkv")
qf, kf, vf = (t.float().numpy() for t in (q, k, v))
save_file({"q": q.float(), "k": k.float(), "v": v.float()}, "expected.safetensors")

torch.save({"q": q, "k": k, "v": v, "timestep": torch.tensor([750.0]), "layer_idx": 2}, "attn.pt")
# Views of one fused projection, as they leave chunk() and transpose().
fused = torch.cat([t.transpose(1, 2) for t in (q, k, v)], dim=-1)
parts = [t.transpose(1, 2) for t in fused.chunk(3, dim=-1)]
torch.save({"attn": dict(zip(("query", "key", "value"), parts)), "step": 10}, "views.pt")
torch.save([q, k], "pair.pth")
torch.save(q, "single.pt")
torch.save({"q": q, "k": k}, "legacy.pt", _use_new_zipfile_serialization=False)

np.savez("qk.npz", q=qf, k=kf, layer=np.int64(2))
np.savez_compressed("qk_deflated.npz", q=qf, k=kf, layer=np.int64(2), note=np.array("text"))

with h5py.File("qk.h5", "w") as f:
    f.create_dataset("q", data=qf, chunks=(1, 1, 40, 64))
    f.create_dataset("k", data=kf)
    f.attrs["layer_idx"] = 2
with h5py.File("qk_gzip.h5", "w") as f:
    options = dict(chunks=(1, 1, 40, 24), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("block/attn/q", data=q.half().numpy(), **options)
    f.create_dataset("block/attn/k", data=k.half().numpy().astype(">f2"), **options)

save_file({name: t.transpose(1, 2).contiguous() for name, t in zip("qkv", (q, k, v))},
          "flash_bshd.safetensors", {"layout": "bshd", "layer": "2", "step": "10", "scale": "0.125"})
