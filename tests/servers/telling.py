"""Says of itself what llama-server's /props would."""

import json

from tests.servers.answering import serve

SETTINGS = {"n_ctx": 2048}
MODALITIES = {"vision": True, "audio": False}
PROPS = {"total_slots": 3, "default_generation_settings": SETTINGS, "modalities": MODALITIES}
serve(props=json.dumps(PROPS).encode())
