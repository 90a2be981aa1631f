"""Programs that stand in for model servers which cannot run here: vLLM, SGLang, ComfyUI, a trainer.

They read the flags that those document with the parsers those have, take their time to load, listen
when those do, write their lines when they fail, and ask for keys where those ask. What happens is
said by `standin.json` in the model folder: `load_seconds`, `free_gib` of `total_gib`, `kv_tokens`,
and `fails` for the rest.
"""
