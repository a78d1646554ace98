# SPDX-License-Identifier: MIT
"""Models of libraries that people train, at small sizes and from no download: transformers, timm, torchvision, peft,
lightning, accelerate."""
import torch
from torch.nn import functional

from loop import digest, program, tell, train
from networks import classes, images

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 256}
# name: model class, configuration class, what it is given otherwise than SMALL
LANGUAGE_MODELS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {"n_embd": 64, "n_layer": 3, "n_head": 4, "vocab_size": 256, "n_positions": 64}),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL),
    "opt": ("OPTForCausalLM", "OPTConfig", {**SMALL, "ffn_dim": 128, "word_embed_proj_dim": 64, "max_position_embeddings": 64}),
    "bloom": ("BloomForCausalLM", "BloomConfig", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 256}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**SMALL, "num_key_value_heads": 2}),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**SMALL, "num_key_value_heads": 2, "sliding_window": 16}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", {**SMALL, "num_key_value_heads": 2}),
    "phi": ("PhiForCausalLM", "PhiConfig", SMALL),
    "gemma": ("GemmaForCausalLM", "GemmaConfig", {**SMALL, "num_key_value_heads": 2, "head_dim": 16}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**SMALL, "num_key_value_heads": 2, "num_local_experts": 4}),
    "mamba": ("MambaForCausalLM", "MambaConfig", {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 256, "state_size": 8}),
}
MASKED_MODELS = {
    "bert": ("BertForMaskedLM", "BertConfig", SMALL),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", {**SMALL, "max_position_embeddings": 66}),
    "distilbert": ("DistilBertForMaskedLM", "DistilBertConfig", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 256}),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {**SMALL, "embedding_size": 64}),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**SMALL, "embedding_size": 32}),
    "deberta": ("DebertaV2ForMaskedLM", "DebertaV2Config", {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
}
SEQUENCE_MODELS = {
    "t5": ("T5ForConditionalGeneration", "T5Config", {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4, "vocab_size": 256, "decoder_start_token_id": 0}),
    "bart": ("BartForConditionalGeneration", "BartConfig", {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                                                           "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 256, "max_position_embeddings": 64}),
}


def built(model, configuration, given):
    import transformers
    return getattr(transformers, model)(getattr(transformers, configuration)(**given))


def add_text_model(name, made_of):
    @program(name, "transformers")
    def run(steps):
        model = built(*made_of)

        def loss():
            tokens = torch.randint(2, 256, (8, 32))
            return model(input_ids=tokens, labels=tokens).loss
        train(steps, model, loss)


for each, made_of in {**LANGUAGE_MODELS, **MASKED_MODELS, **SEQUENCE_MODELS}.items():
    add_text_model(each, made_of)


@program("vit-hugging-face", "transformers")
def vit(steps):
    model = built("ViTForImageClassification", "ViTConfig", {**SMALL, "image_size": 32, "patch_size": 8, "num_labels": 10})
    train(steps, model, lambda: model(pixel_values=images(), labels=classes()).loss)


@program("clip", "transformers")
def clip(steps):
    text = {**SMALL, "max_position_embeddings": 32, "projection_dim": 32, "eos_token_id": 255}
    vision = {**SMALL, "image_size": 32, "patch_size": 8, "projection_dim": 32}
    vision.pop("vocab_size")
    model = built("CLIPModel", "CLIPConfig", {"text_config": text, "vision_config": vision, "projection_dim": 32})
    train(steps, model, lambda: model(input_ids=torch.randint(0, 255, (8, 16)), pixel_values=images(), return_loss=True).loss)


@program("wav2vec2", "transformers")
def wav2vec2(steps):
    model = built("Wav2Vec2ForCTC", "Wav2Vec2Config", {**SMALL, "vocab_size": 32, "conv_dim": [32] * 3, "conv_stride": [5, 4, 4], "conv_kernel": [10, 8, 4],
                                                       "num_feat_extract_layers": 3, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "mask_time_prob": 0.0})
    train(steps, model, lambda: model(torch.randn(4, 4000), labels=torch.randint(1, 32, (4, 8))).loss)


@program("trainer", "transformers", "accelerate")
def trainer(steps):
    import tempfile
    import transformers
    model = built(*LANGUAGE_MODELS["gpt2"])
    data = [{"input_ids": line, "labels": line} for line in torch.randint(0, 256, (16 * steps, 32))]

    class Tell(transformers.TrainerCallback):
        def on_log(self, arguments, state, control, logs=None, **_):
            if "loss" in logs:
                print("step", state.global_step, float(logs["loss"]).hex(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=steps,
                                                 logging_steps=1, save_steps=4, report_to=[], disable_tqdm=True, use_cpu=True)
        transformers.Trainer(model, options, train_dataset=data, callbacks=[Tell()]).train()
    digest(model)


@program("lora", "transformers", "peft")
def lora(steps):
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(built(*LANGUAGE_MODELS["llama"]), LoraConfig(r=4, lora_dropout=0.1, target_modules=["q_proj", "v_proj"]))

    def loss():
        tokens = torch.randint(2, 256, (8, 32))
        return model(input_ids=tokens, labels=tokens).loss
    train(steps, model, loss)


@program("accelerate", "accelerate", "transformers")
def accelerated(steps):
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer = accelerator.prepare(built(*MASKED_MODELS["bert"]), None)[:1][0], None
    optimizer = accelerator.prepare(torch.optim.AdamW(model.parameters(), lr=1e-3))
    model.train()
    for step in range(2 * steps):
        with accelerator.accumulate(model):
            tokens = torch.randint(2, 256, (4, 32))
            loss = model(input_ids=tokens, labels=tokens).loss
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        tell(step, loss)
    digest(model)


@program("lightning", "lightning")
def lightning(steps):
    import lightning.pytorch as pl
    from networks import small_convolutions

    class Classifier(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = small_convolutions()

        def training_step(self, batch, at):
            loss = functional.cross_entropy(self.body(batch[0]), batch[1])
            tell(at, loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(images(8 * steps), classes(8 * steps))
    model = Classifier()
    pl.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
               enable_model_summary=False, gradient_clip_val=1.0).fit(model, torch.utils.data.DataLoader(data, 8))
    digest(model)


def add_image_model(library, name, size, **given):
    @program(f"{library}-{name.replace('_', '-')}", library)
    def run(steps):
        if library == "timm":
            import timm
            model = timm.create_model(name, num_classes=10, **given)
        else:
            import torchvision
            model = getattr(torchvision.models, name)(num_classes=10, **given)

        def loss():
            out = model(images(4, size))
            out = out.logits if hasattr(out, "logits") else out
            return functional.cross_entropy(out, classes(4))
        train(steps, model, loss, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))


for each, size in {"resnet18": 48, "resnetv2_50": 32, "densenet121": 32, "efficientnet_b0": 48, "mobilenetv3_small_100": 48, "convnext_atto": 48, "regnetx_002": 48,
                   "ghostnet_050": 48, "tf_efficientnetv2_b0": 48}.items():
    add_image_model("timm", each, size)
for each in ("vit_tiny_patch16_224", "mixer_s32_224", "deit_tiny_distilled_patch16_224"):
    add_image_model("timm", each, 64, img_size=64)
for each, size in {"resnet18": 48, "vgg11_bn": 32, "shufflenet_v2_x0_5": 48, "squeezenet1_1": 48, "swin_t": 64, "mnasnet0_5": 48}.items():
    add_image_model("torchvision", each, size)


@program("torchvision-detection", "torchvision")
def torchvision_detection(steps):
    import torchvision
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)

    def loss():
        corner = torch.rand(2, 3, 2) * 100
        truth = [{"boxes": torch.cat([c, c + 20 + torch.rand(3, 2) * 80], 1), "labels": torch.randint(1, 4, (3,))} for c in corner]
        return sum(model(list(torch.rand(2, 3, 160, 160)), truth).values())
    train(steps, model, loss, torch.optim.SGD(model.parameters(), lr=1e-3))
