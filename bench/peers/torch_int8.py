#!/usr/bin/env python3
"""PyTorch decoding the translator greedily with dynamically quantized weights: Linear and GRU in int8, the embedding and
the attention's own input projection in float32, as torch.ao.quantization.quantize_dynamic leaves them."""
import argparse
import sys
import time
import warnings

p = argparse.ArgumentParser()
p.add_argument("--peers", required=True, help="folder with torch_models.py, common.py and lengths.py")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--units", type=int, default=256)
p.add_argument("--vocab", type=int, default=5000)
p.add_argument("--tokens", type=int, default=16)
p.add_argument("--steps", type=int, default=40)
p.add_argument("--warm", type=int, default=5)
p.add_argument("--max-seconds", type=float, default=120)
a = p.parse_args()
sys.path.insert(0, a.peers)
warnings.filterwarnings("ignore")
import torch  # noqa: E402
import lengths  # noqa: E402
import torch_models as M  # noqa: E402
from common import median, report  # noqa: E402

torch.set_num_threads(a.threads)
torch.manual_seed(7)
model = M.Translator(a.vocab, a.units, False).eval()
model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear, torch.nn.GRU}, dtype=torch.qint8)
sources = [torch.from_numpy(b[0]) for b in lengths.batches("translator", a.batch, 20, a.vocab, "batch")]
times, started = [], time.perf_counter()
with torch.inference_mode():
    for k in range(a.steps + 1):
        x = sources[k % len(sources)]
        start = time.perf_counter()
        pad = x == 0
        memory = model.encoder(x, (~pad).sum(1))
        token, state, out = torch.full((a.batch, 1), 2), None, []
        for _ in range(a.tokens):
            logits, state = model.decoder(memory, pad, token, state)
            token = logits.argmax(-1)
            out.append(token)
        assert torch.cat(out, 1).numpy().shape == (a.batch, a.tokens)
        end = time.perf_counter()
        times.append(end - start)
        if end - started > a.max_seconds:
            break
times = times[1:] or times
times = times[min(a.warm, max(0, len(times) - 3)):]
report(dict(workload="decode", peer="torch", variant="greedy int8", threads=a.threads, B=a.batch, units=a.units,
            vocab=a.vocab, tokens=a.tokens, n_steps=len(times), step_ms=round(1e3 * median(times), 3),
            tok_s=round(a.batch * a.tokens * len(times) / sum(times))))
