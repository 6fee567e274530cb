"""Nodes of ComfyUI: Attention capture, Attention words. Link this folder into custom_nodes (docs/comfyui.md)."""

from .nodes import NODE_CLASS_MAPPINGS, NODE_DISPLAY_NAME_MAPPINGS

__all__ = ["NODE_CLASS_MAPPINGS", "NODE_DISPLAY_NAME_MAPPINGS"]
