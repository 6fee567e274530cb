"""Attention whose result is the difference of two maps' (Differential Transformer, Ye et al., arXiv:2410.05258)."""

from __future__ import annotations

from typing import Any


def subtracted(module: Any, own: str, call_name: str, first: int) -> dict[str, Any] | None:
    """What is taken from the result of the attention module's call `call_name`, whose first call is `own`: the slot
    of the call that it is the result of, the factor that it is multiplied by and, where the heads of one map are
    taken from each other, how many `heads` are left: the model's head h < heads loses head h + heads, and from heads
    on nothing is taken. None where nothing is; `first`: the model's number of the first head that is stored."""
    if getattr(module, "use_differential", False) is True:  # Stable Audio 3: its first call less its second
        return {"slot": f"{own}.2", "factor": 1.0} if call_name == own else None
    if type(module).__name__ == "DiffLlamaAttention":  # two calls of one map, each with half of the values
        heads = module.config.num_attention_heads // 2
        if first >= heads:
            return None
        learnt = [(module.lambda_q1 * module.lambda_k1), (module.lambda_q2 * module.lambda_k2)]
        one, two = (float(product.detach().float().sum().exp()) for product in learnt)
        return {"slot": call_name, "factor": one - two + module.lambda_init, "heads": heads}
    return None
