"""Attention whose result is the difference of two maps' (Differential Transformer, Ye et al. 2024, arXiv:2410.05258)."""

from __future__ import annotations

from typing import Any


def subtracted(module: Any, own: str, call_name: str) -> dict[str, Any] | None:
    """What is taken from the result of the attention module's call `call_name`, whose first call is `own`: the slot
    of the call that it is the result of, the factor that it is multiplied by and, where the heads of one map are
    taken from each other, how many `heads` are left: head h loses head h + heads. None where nothing is."""
    if getattr(module, "use_differential", False) is True:  # Stable Audio 3: its first call less its second
        return {"slot": f"{own}.2", "factor": 1.0} if call_name == own else None
    if type(module).__name__ == "DiffLlamaAttention":  # two calls of one map, each with half of the values
        learnt = [(module.lambda_q1 * module.lambda_k1), (module.lambda_q2 * module.lambda_k2)]
        first, second = (float(product.detach().float().sum().exp()) for product in learnt)
        heads = module.config.num_attention_heads // 2
        return {"slot": call_name, "factor": first - second + module.lambda_init, "heads": heads}
    return None
