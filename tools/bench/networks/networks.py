"""Networks that measurements run as services and trainings. Weights are random, nothing is fetched; a caller
that wants the same ones in every run sets torch's seed before."""
import gc
import os

# before the libraries are loaded: they would look for weights, and threads of tokenizers
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import torch


def resnet50(device="cuda"):
    try:
        import timm
        network = timm.create_model("resnet50", pretrained=False)
    except ImportError:
        import torchvision
        network = torchvision.models.resnet50(weights=None)
    return network.to(device).to(memory_format=torch.channels_last)


def bert(device="cuda", layers=12, dropout=0.1):
    import transformers
    config = transformers.BertConfig(num_hidden_layers=layers, hidden_dropout_prob=dropout,
                                     attn_implementation="sdpa")
    return transformers.BertForMaskedLM(config).to(device)


def gpt2(device="cuda", dtype=torch.bfloat16):
    import transformers
    return transformers.GPT2LMHeadModel(transformers.GPT2Config()).to(device).to(dtype).eval()


def llama(device="cuda", dtype=torch.bfloat16, layers=8, hidden=1024):
    """Small, of Llama's kind."""
    import transformers
    config = transformers.LlamaConfig(num_hidden_layers=layers, hidden_size=hidden,
                                      intermediate_size=hidden * 11 // 4, num_attention_heads=hidden // 64,
                                      num_key_value_heads=hidden // 64, attn_implementation="sdpa")
    return transformers.LlamaForCausalLM(config).to(device).to(dtype).eval()


def trained(network, loss_of):
    """A step of training in bfloat16, which returns its loss; and what gives the weights."""
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9)
    device = next(network.parameters()).device.type

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(network)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step, lambda: list(network.parameters())


def decode(network, prompt, count):
    """A generator of `count` passes: of the prompt, then of one token each, greedily. What it yields last has
    all tokens."""
    cache, tokens, found = None, prompt, []
    for left in reversed(range(count)):
        answer = network(input_ids=tokens, past_key_values=cache, use_cache=True)
        cache, tokens = answer.past_key_values, answer.logits[:, -1:].argmax(-1)
        found.append(tokens)
        yield tokens if left else torch.cat(found, 1)


def captured(stages, count):
    """What `stages` (a generator of `count` results, all on the GPU) does, as a CUDA graph for each stage; a
    function that replays them and returns the last result."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graphs, results, pool = [], [], torch.cuda.graph_pool_handle()
    with torch.cuda.stream(side):
        for _ in range(2):
            for _ in stages():
                pass
        side.synchronize()
        generator = stages()
        gc.collect()
        gc.disable()   # what it destroys could make calls that end a capture
        try:
            for _ in range(count):
                graph = torch.cuda.CUDAGraph()
                graph.capture_begin(pool=pool)
                try:
                    results.append(next(generator))
                finally:
                    graph.capture_end()
                graphs.append((graph, generator))   # whose memory the graphs use
        finally:
            gc.enable()
    torch.cuda.current_stream().wait_stream(side)

    def replay():
        for graph, _ in graphs:
            graph.replay()
        return results[-1]
    return replay
