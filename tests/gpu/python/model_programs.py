"""Models of transformers and timm with random weights: nothing is fetched. Each runs forwards and backwards,
or generates."""
import os

import program as p
from program import program, show

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def near(name, ours, reference, tolerance=2e-3):
    error = float((ours.detach().double().cpu() - reference.detach().double()).abs().max())
    assert error <= tolerance, f"{name}: off by {error}"
    show(name, "right")


def language_model(kind, config, generate=True, **inputs):
    import transformers
    torch.manual_seed(1)
    model = getattr(transformers, kind)(config).eval()
    ids = torch.randint(3, 90, (2, 12))
    expected = model(input_ids=ids, **inputs).logits
    model.cuda()
    near("logits", model(input_ids=ids.cuda(), **{k: v.cuda() for k, v in inputs.items()}).logits, expected)
    if generate:
        with torch.no_grad():
            show("tokens", model.generate(ids.cuda(), max_new_tokens=8, do_sample=False, pad_token_id=0,
                                          eos_token_id=None).shape)
    loss = model(input_ids=ids.cuda(), labels=ids.cuda()).loss
    loss.backward()
    show("loss", round(float(loss), 2))


@program
def gpt2():
    from transformers import GPT2Config
    language_model("GPT2LMHeadModel",
                   GPT2Config(vocab_size=100, n_positions=64, n_embd=64, n_layer=2, n_head=4))


@program
def llama():
    from transformers import LlamaConfig
    language_model("LlamaForCausalLM",
                   LlamaConfig(vocab_size=100, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                               num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64))


@program
def mixtral():
    from transformers import MixtralConfig
    language_model("MixtralForCausalLM",
                   MixtralConfig(vocab_size=100, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
                                 num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
                                 max_position_embeddings=64))


@program
def bert():
    from transformers import BertConfig
    language_model("BertForMaskedLM", BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2,
                                                 num_attention_heads=4, intermediate_size=128),
                   generate=False)


@program
def t5():
    from transformers import T5Config, T5ForConditionalGeneration
    torch.manual_seed(1)
    model = T5ForConditionalGeneration(T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2,
                                                num_heads=4, decoder_start_token_id=0)).eval()
    ids = torch.randint(3, 90, (2, 10))
    expected = model(input_ids=ids, labels=ids).logits
    model.cuda()
    near("logits", model(input_ids=ids.cuda(), labels=ids.cuda()).logits, expected, 0.05)


@program
def whisper():
    from transformers import WhisperConfig, WhisperModel
    torch.manual_seed(1)
    model = WhisperModel(WhisperConfig(vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2,
                                       encoder_attention_heads=4, decoder_attention_heads=4,
                                       encoder_ffn_dim=128, decoder_ffn_dim=128, num_mel_bins=16,
                                       max_source_positions=50, max_target_positions=20,
                                       pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                       decoder_start_token_id=1)).eval()
    sound, ids = torch.randn(1, 16, 100), torch.randint(3, 90, (1, 6))
    expected = model(input_features=sound, decoder_input_ids=ids).last_hidden_state
    near("states", model.cuda()(input_features=sound.cuda(), decoder_input_ids=ids.cuda()).last_hidden_state,
         expected)


def picture_model(name, size, **more):
    import timm
    torch.manual_seed(1)
    model = timm.create_model(name, pretrained=False, num_classes=10, **more).eval()
    images = torch.randn(2, 3, size, size)
    expected = model(images)
    model.cuda()
    near("logits", model(images.cuda()), expected)
    model.train()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(images.cuda()).square().mean()
    loss.backward()
    show("finite gradients",
         all(bool(w.grad.isfinite().all()) for w in model.parameters() if w.grad is not None))


@program
def resnet():
    picture_model("resnet18", 96)


@program
def vision_transformer():
    picture_model("vit_tiny_patch16_224", 224)


@program
def convnext():
    picture_model("convnext_atto", 96)


@program
def efficientnet():
    picture_model("efficientnet_b0", 96)


@program
def mixer():
    picture_model("mixer_s32_224", 224)


if __name__ == "__main__":
    p.main()
