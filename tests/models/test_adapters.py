"""Adapters: nothing at the start, the same multiplied out as beside, and nothing else that learns or is saved."""

from __future__ import annotations

from typing import Any

import pytest
import schemas
import torch
from torch import Tensor, nn

from seqwise.data.batch import Batch, Labels, Tokens, prompt_batch
from seqwise.errors import ConfigError
from seqwise.layers.low_rank import add_low_rank
from seqwise.models import MODELS
from seqwise.models.adapters import MODULES, adapt, merged, rows_of
from seqwise.models.peft_names import PEFTLayout

SMALL: dict[str, Any] = {"context": 12, "num_layers": 2, "model_dim": 16, "num_heads": 4, "adapter": "lora"}
GPT2 = {"positions": "learned", "activation": "gelu_tanh", "biases": True, "normalise_queries": False}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {"pooling": "first"}),
    "shared": ("bert", {"shared_layers": True, "pooling": "mean"}),
    "gpt": ("gpt", {"num_kv_heads": 2, "activation": "swiglu", "norm": "rms"}),
    "gpt2": ("gpt", GPT2),
}
TARGETS = {"usual": ["query", "value"], "all": ["down", "value", "output", "query", "up", "key"], "one": ["key"]}
OWN = ("head.label.output.weight", "head.label.output.bias")


def settings_of(shape: str, targets: str = "usual", **more: Any) -> Any:
    family, settings = SHAPES[shape]
    return MODELS[family].config(**SMALL, **settings, adapter_targets=TARGETS[targets], adapter_rank=3, **more)


def build(config: Any, schema: Any, shape: str) -> Any:
    torch.manual_seed(0)
    model = MODELS[SHAPES[shape][0]].build(config, schema).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def answers(model: Any, seed: int = 0) -> Tensor:
    batch = rows(seed)
    found: Tensor = model.score(batch)[0]
    return found


def rows(seed: int = 0) -> Batch:
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 9, (5, 8), generator=random)
    return Batch(
        {"tokens": Tokens(ids, torch.arange(8) < torch.tensor([[8], [3], [5], [8], [1]]))},
        {"label": Labels(ids[:, 0] % 3)},
    )


def give_it_something(model: nn.Module) -> None:
    """As if it had learned."""
    for name, parameter in model.named_parameters():
        if ".weight.0.up." in name:
            nn.init.normal_(parameter, std=0.3)


def adapted(shape: str, targets: str = "usual") -> tuple[Any, Any, dict[str, Tensor]]:
    """A model with an adapter, its config, and the weights of the plain one."""
    config = settings_of(shape, targets)
    model = build(config, schemas.of_answers(3, vocab_size=9), shape)
    plain = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    adapt(model, config, OWN)
    return model, config, plain


def test_a_layer_adds_what_its_thin_matrices_make_of_the_input() -> None:
    torch.manual_seed(0)
    layer, x = nn.Linear(6, 9), torch.randn(4, 6)
    before, weight = layer(x), layer.weight.detach().clone()
    added = add_low_rank(layer, {"value": slice(6, 9), "query": slice(0, 3)}, rank=2, alpha=5.0)
    assert torch.equal(layer(x), before)
    for name in ("query", "value"):
        nn.init.normal_(added.up[name])
    expected = before.clone()
    expected[:, :3] += 2.5 * (x @ added.down["query"].T) @ added.up["query"].T
    expected[:, 6:] += 2.5 * (x @ added.down["value"].T) @ added.up["value"].T
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer.weight[3:6], weight[3:6])  # keys


@pytest.mark.parametrize("shape", SHAPES)
def test_at_the_start_nothing_is_changed(shape: str) -> None:
    config = settings_of(shape)
    model = build(config, schemas.of_answers(3, vocab_size=9), shape)
    before = answers(model)
    adapt(model, config, OWN)
    assert torch.equal(answers(model), before)
    give_it_something(model)
    assert not torch.allclose(answers(model), before, atol=1e-3)


@pytest.mark.parametrize("targets", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
def test_multiplied_out_it_is_the_same_model(shape: str, targets: str) -> None:
    model, config, plain = adapted(shape, targets)
    give_it_something(model)
    other = build(config, schemas.of_answers(3, vocab_size=9), shape)
    other.load_state_dict(merged(plain, model.state_dict(), config))
    torch.testing.assert_close(answers(other), answers(model), atol=1e-6, rtol=0)
    layout = PEFTLayout.of(config, schemas.of_answers(3, vocab_size=9))
    if layout is not None:  # and by the names of others
        saved = layout.names_in(layout.names_out(model.state_dict()))
        assert saved.keys() == model.state_dict().keys()
        assert all(torch.equal(saved[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("shape", SHAPES)
def test_only_the_adapter_and_the_head_learn(shape: str) -> None:
    model, config, plain = adapted(shape)
    give_it_something(model)
    loss = model.loss(rows())
    loss.over({"label": 5}).backward()
    learned = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learned == {name for name, _ in model.named_parameters() if ".weight.0." in name or name in OWN}
    assert all(parameter.requires_grad == (name in learned) for name, parameter in model.named_parameters())
    assert any(".up.query" in name for name in learned)


def test_keys_and_values_of_fewer_heads_have_fewer_rows() -> None:
    found = [rows_of(target, 16 + 8 + 8, settings_of("gpt")) for target in ("query", "key", "value", "output")]
    assert found == [slice(0, 16), slice(16, 24), slice(24, 32), slice(0, 32)]


def test_what_is_saved_is_what_is_learned_and_it_is_read_back() -> None:
    model, config, plain = adapted("bert")
    give_it_something(model)
    saved, expected = {name: t.clone() for name, t in model.state_dict().items()}, answers(model)
    block = "body.blocks.1.attention.qkv.lora"
    assert {*OWN, f"{block}.query.down", f"{block}.query.up", f"{block}.value.down", f"{block}.value.up"} < {*saved}
    assert len(saved) == len(OWN) + 2 * 2 * 2
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.add_(1.0)
    assert not torch.allclose(answers(model), expected)
    model.load_state_dict(saved)
    assert torch.equal(answers(model), expected)
    with pytest.raises(RuntimeError, match=r"body\.blocks\.0\.attention"):
        model.load_state_dict({name: t for name, t in saved.items() if "blocks.0" not in name})
    with pytest.raises(RuntimeError, match="Unexpected"):
        model.load_state_dict({**saved, "body.other": torch.zeros(1)})


@pytest.mark.parametrize("shape", ["gpt", "gpt2"])
def test_a_model_that_continues_does_so_with_its_adapter(shape: str) -> None:
    """Its fast path reads the matrices themselves."""
    schema, config = schemas.of_text(9), settings_of(shape)
    model = build(config, schema, shape)
    adapt(model, config, ())
    give_it_something(model)
    tokens = torch.randint(0, 9, (2, 6), generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        _, state = model.start(prompt_batch(tokens[:, :4].tolist()))
        stepped, _ = model.step(tokens[:, 4], state)
        whole, _ = model.start(prompt_batch(tokens[:, :5].tolist()))
    torch.testing.assert_close(stepped, whole)


def test_the_fused_matrix_of_gpt2_is_changed_in_the_same_way() -> None:
    model, config, _ = adapted("gpt2", "usual")
    give_it_something(model)
    layout = PEFTLayout.of(config, schemas.of_answers(3, vocab_size=9))
    assert layout is not None
    named, told = layout.names_out(model.state_dict()), layout.settings("base")
    theirs = "base_model.model.h.1.attn.c_attn"
    down, up = named[f"{theirs}.lora_A.weight"], named[f"{theirs}.lora_B.weight"]
    assert (tuple(down.shape), tuple(up.shape)) == ((6, 16), (48, 6))
    scale = told["alpha_pattern"]["c_attn"] / told["rank_pattern"]["c_attn"]
    layer = model.body.blocks[1].attention.qkv
    change = layer.weight - layer.parametrizations.weight.original
    torch.testing.assert_close(scale * up @ down, change.detach())
    assert (told["target_modules"], told["fan_in_fan_out"]) == (["attn.c_attn"], True)


def test_names_of_others_are_given_where_they_have_such_a_shape() -> None:
    def layout(shape: str, **settings: Any) -> PEFTLayout | None:
        config, schema = settings_of(shape), schemas.of_answers(3, vocab_size=9)
        for name, value in {"pooling": "first", **settings}.items():
            object.__setattr__(config, name, value)
        return PEFTLayout.of(config, schema)

    first, mean = layout("bert"), layout("bert", pooling="mean")
    assert first is not None
    assert mean is not None
    assert (first.task, first.classifier, first.prefix) == ("SEQ_CLS", "label", "base_model.model.bert.")
    assert (mean.task, mean.classifier, mean.prefix) == ("FEATURE_EXTRACTION", None, "base_model.model.")
    assert layout("shared") is None
    assert layout("bert", positions="rotary") is None
    assert layout("gpt") is None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"adapter_targets": ["query", "values"]}, r'adapter_targets: "values" is not known\. Did you mean "value"'),
        ({"adapter_targets": []}, "should name some matrices"),
        ({"adapter_targets": ["query", "query"]}, "each once"),
        ({"adapter_rank": 0}, "should be above 0"),
        ({"adapter_alpha": 0.0}, "should be above 0"),
    ],
)
def test_mistakes_are_told(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        MODELS["bert"].config(**settings)


def test_what_a_body_does_not_have_is_told() -> None:
    config = MODELS["bert"].config(**{**SMALL, "adapter_targets": ["gate"]})
    with pytest.raises(ConfigError, match=r"\['gate'\]: body\.blocks\.0 has no feed_forward\.gate"):
        adapt(build(config, schemas.of_answers(3, vocab_size=9), "bert"), config, OWN)
    assert set(MODULES) == {"query", "key", "value", "output", "gate", "up", "down"}
