"""A weight that training makes too large for fp32 while the loss is finite."""

import json
import struct

# AdamW turns a weight without gradient into -1.2 of it with each full step.
ARGUMENTS = ["--optimizer", "adamw", "--implementation", "for_loop",
             "--learning-rate", 0.22, "--weight-decay", 10]
WORD = 29  # that no example says


def set_growing_weight(folder):
    """In a saved BERT: behind the fourth of 100 steps it is no number."""
    path = folder / "model.safetensors"
    weights = bytearray(path.read_bytes())
    size = int.from_bytes(weights[:8], "little")
    header = json.loads(weights[8:8 + size])
    name, = (n for n in header if n.endswith("word_embeddings.weight"))
    width = header[name]["shape"][1]
    at = 8 + size + header[name]["data_offsets"][0] + 4 * width * WORD
    weights[at:at + 4] = struct.pack("<f", 2e38)
    path.write_bytes(weights)
