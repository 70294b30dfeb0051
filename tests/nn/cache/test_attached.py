"""Models of transformers under a bounded cache: the same tokens with a large budget, refusals, nothing left behind."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix import nn
from separatrix.core import InvalidInput

pytest.importorskip("transformers", reason="transformers is not installed: separatrix[hub]")

RelevanceCache, relevance_attention = nn.RelevanceCache, nn.relevance_attention

SMALL = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def made(kind: str, **options: Any) -> Any:
    """A small model with random weights, in evaluation mode."""
    import transformers

    if kind == "GPT2":
        config = transformers.GPT2Config(
            vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=2, **options
        )
        model_class: Any = transformers.GPT2LMHeadModel
    else:
        config = getattr(transformers, f"{kind}Config")(**{**SMALL, **options})
        model_class = getattr(transformers, f"{kind}ForCausalLM")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)  # uneven attention, so that policies differ
    return model


@pytest.fixture(scope="module")
def llama() -> Any:
    return made("Llama")


@pytest.fixture(scope="module")
def prompt() -> Tensor:
    return torch.randint(3, 40, (2, 14), generator=torch.Generator().manual_seed(3))


def written(model: Any, tokens: Tensor, cache: Any = None, n: int = 8, **options: Any) -> Tensor:
    """Tokens after greedy generation."""
    mask = options.pop("attention_mask", torch.ones_like(tokens))
    return model.generate(
        tokens, attention_mask=mask, past_key_values=cache, max_new_tokens=n, do_sample=False, pad_token_id=0,
        eos_token_id=None, **options,
    )  # fmt: skip


@pytest.mark.sampled(1, each="kind")
@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "Qwen3", "GPT2"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_budget_writes_the_same_tokens(kind: str, dtype: torch.dtype, prompt: Tensor) -> None:
    model = made(kind).to(dtype)
    model.set_attn_implementation("eager")  # other implementations round 16 bits otherwise
    cache = RelevanceCache(12, 10)
    with relevance_attention(model, cache):
        bounded = written(model, prompt, cache)
    assert torch.equal(bounded, written(model, prompt))
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("policy", ["screening", "heavy_hitter", "tova", "sinks", "window", "random"])
def test_a_small_budget_is_kept_and_every_policy_generates(llama: Any, prompt: Tensor, policy: str) -> None:
    cache = RelevanceCache(4, 3, policy)
    with relevance_attention(llama, cache, check=False):
        assert written(llama, prompt, cache).shape == (2, 22)
    assert [tuple(kept.shape) for kept in cache.kept_positions] == [(2, 2, 7)] * 2
    assert cache.get_seq_length() == 21
    assert cache.get_mask_sizes(3, 0) == (10, 14)


def logits_of(model: Any, parts: list[Tensor], **options: Any) -> tuple[Tensor, RelevanceCache]:
    cache = RelevanceCache(4, 3, **options)
    with torch.no_grad(), relevance_attention(model, cache, check=False):
        found = [model(input_ids=part, past_key_values=cache).logits for part in parts]
    return torch.cat(found, 1), cache


def test_chunks_of_a_prompt_are_calls_of_their_own(llama: Any, prompt: Tensor) -> None:
    whole, cache = logits_of(llama, [prompt], prefill_chunk=5)
    parts, same = logits_of(llama, list(prompt.split(5, 1)))
    torch.testing.assert_close(whole, parts, rtol=1e-5, atol=1e-5)
    assert torch.equal(cache.kept_positions[1], same.kept_positions[1])
    single, _ = logits_of(llama, list(prompt.split(1, 1)))
    exact, _ = logits_of(llama, [prompt], prefill_chunk=1)
    torch.testing.assert_close(single, exact, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(exact, whole, rtol=1e-3)  # tokens of one chunk see each other


def test_a_prompt_in_two_parts_is_the_prompt_where_nothing_is_forgotten(llama: Any, prompt: Tensor) -> None:
    found = []
    for parts in ([prompt], [prompt[:, :6], prompt[:, 6:]]):
        cache = RelevanceCache(10, 6)
        with torch.no_grad(), relevance_attention(llama, cache, check=False):
            found.append(torch.cat([llama(input_ids=part, past_key_values=cache).logits for part in parts], 1))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_a_sequence_does_not_depend_on_its_batch(llama: Any, prompt: Tensor) -> None:
    together, _ = logits_of(llama, [prompt])
    alone, _ = logits_of(llama, [prompt[1:]])
    torch.testing.assert_close(together[1:], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["Llama", "GPT2"])
def test_left_padding_is_as_if_it_were_not_there(kind: str, prompt: Tensor) -> None:
    model, mask = made(kind), torch.ones_like(prompt)
    mask[0, :4] = 0
    cache = RelevanceCache(4, 3, pad_lengths=(mask == 0).sum(1))
    with relevance_attention(model, cache, check=False):
        padded = written(model, prompt, cache, attention_mask=mask)
    single = RelevanceCache(4, 3)
    with relevance_attention(model, single, check=False):
        alone = written(model, prompt[:1, 4:], single)
    assert torch.equal(padded[:1, 4:], alone)


def test_a_conversation_goes_on_and_can_branch(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(30, 20)
    with relevance_attention(llama, cache):
        first = written(llama, prompt, cache)
        more = torch.cat([first, prompt[:, :5]], 1)
        branch = copy.deepcopy(cache)
        second = written(llama, more, cache)
        with relevance_attention(llama, branch):
            other = written(llama, more, branch)
    assert torch.equal(second, written(llama, more))
    assert torch.equal(second, other)


def test_beam_search_moves_positions_and_scores(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(20, 10)
    with relevance_attention(llama, cache):
        bounded = written(llama, prompt, cache, num_beams=3)
    assert torch.equal(bounded, written(llama, prompt, num_beams=3))


def registries() -> tuple[set[str], set[str]]:
    from transformers import AttentionInterface, AttentionMaskInterface

    return set(AttentionInterface._global_mapping), set(AttentionMaskInterface._global_mapping)


def test_nothing_is_left_behind_also_after_an_exception(llama: Any, prompt: Tensor) -> None:
    before, cache = registries(), RelevanceCache(4, 3)
    with pytest.raises(KeyError), relevance_attention(llama, cache):
        raise KeyError
    assert registries() == before
    assert llama.config._attn_implementation == "sdpa"
    with relevance_attention(llama, cache):  # nothing had begun, so it may be used again
        written(llama, prompt, cache)


def test_a_call_that_was_broken_off_spoils_the_cache(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(4, 3)

    def fail(*_: object) -> None:
        raise KeyError

    hook = llama.model.layers[1].register_forward_pre_hook(fail)
    with pytest.raises(KeyError), relevance_attention(llama, cache, check=False):
        llama(input_ids=prompt, past_key_values=cache)
    hook.remove()
    with pytest.raises(InvalidInput, match="in the middle of a call"), relevance_attention(llama, cache):
        llama(input_ids=prompt, past_key_values=cache)
    cache.reset()
    with relevance_attention(llama, cache):
        llama(input_ids=prompt, past_key_values=cache)


def test_contexts_nest_each_with_its_own_cache(llama: Any, prompt: Tensor) -> None:
    outer, inner = RelevanceCache(4, 3), RelevanceCache(4, 3)
    with relevance_attention(llama, outer, check=False):
        with relevance_attention(llama, inner, check=False):
            inside = llama(input_ids=prompt, past_key_values=inner).logits
            with pytest.raises(InvalidInput, match="in its own relevance_attention"):
                llama(input_ids=prompt, past_key_values=outer)
        outside = llama(input_ids=prompt, past_key_values=outer).logits
        with pytest.raises(InvalidInput, match="in use"), relevance_attention(llama, outer):
            pass
    assert torch.equal(inside, outside)


def test_use_outside_or_without_the_cache_is_refused(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(4, 3)
    with pytest.raises(InvalidInput, match="inside `with relevance_attention"):
        llama(input_ids=prompt, past_key_values=cache)
    with pytest.raises(InvalidInput, match="without the cache"), relevance_attention(llama, cache):
        llama(input_ids=prompt)
    with relevance_attention(llama, cache):
        llama.set_attn_implementation("sdpa")
        with pytest.raises(InvalidInput, match="'sdpa' is in force"):
            llama(input_ids=prompt, past_key_values=cache)
    assert llama.config._attn_implementation == "sdpa"


def test_another_model_is_refused(llama: Any, prompt: Tensor) -> None:
    cache, other = RelevanceCache(4, 3), made("Llama", num_hidden_layers=3)
    with relevance_attention(llama, cache):
        llama(input_ids=prompt, past_key_values=cache)
        with pytest.raises(InvalidInput, match="another model"), relevance_attention(other, cache):
            pass
        cache.reset()
        with pytest.raises(InvalidInput, match="another model uses the cache"):
            other(input_ids=prompt, past_key_values=cache)
        cache.reset()
    with pytest.raises(InvalidInput, match="another model"), relevance_attention(other, cache):
        pass
    cache.reset()
    with relevance_attention(other, cache):
        other(input_ids=prompt, past_key_values=cache)


def test_padding_that_was_not_announced_is_refused(llama: Any, prompt: Tensor) -> None:
    mask = torch.ones_like(prompt)
    mask[0, :3] = 0
    with pytest.raises(InvalidInput, match="needs pad_lengths"), relevance_attention(llama, RelevanceCache(4, 3)) as c:
        written(llama, prompt, c, attention_mask=mask)
    wrong = RelevanceCache(4, 3, pad_lengths=torch.tensor([2, 0]))
    with pytest.raises(InvalidInput, match="is not that of pad_lengths"), relevance_attention(llama, wrong):
        written(llama, prompt, wrong, attention_mask=mask)
    with pytest.raises(InvalidInput, match="four dimensions"), relevance_attention(llama, RelevanceCache(4, 3)) as c:
        llama(input_ids=prompt, past_key_values=c, attention_mask=torch.zeros(2, 1, 14, 14))


def test_rollback_is_refused(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(4, 3)
    with pytest.raises(InvalidInput, match="cannot take tokens back"), relevance_attention(llama, cache):
        written(llama, prompt[:1], cache, assistant_model=made("Llama"))
    with pytest.raises(InvalidInput, match="cannot take tokens back"):
        cache.crop(-1)


def test_gradients_may_be_on(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(4, 3)
    with relevance_attention(llama, cache):
        for part in prompt.split((11, 1, 1, 1), 1):
            loss = llama(input_ids=part, past_key_values=cache).logits.square().mean()
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in llama.parameters())
    llama.zero_grad()


def test_inference_mode_then_none(llama: Any, prompt: Tensor) -> None:
    cache = RelevanceCache(4, 3)
    with relevance_attention(llama, cache):
        with torch.inference_mode():
            llama(input_ids=prompt, past_key_values=cache)
        with torch.no_grad():
            assert llama(input_ids=prompt[:, :1], past_key_values=cache).logits.isfinite().all()


def test_static_caches_of_the_library_are_refused_in_one_sentence(llama: Any, prompt: Tensor) -> None:
    import transformers

    sentence = r"without the cache of this context \(with none, or with a static one\)"
    with relevance_attention(llama, RelevanceCache(4, 3)), pytest.raises(InvalidInput, match=sentence):
        llama(prompt, past_key_values=transformers.StaticCache(config=llama.config, max_cache_len=32))
    with relevance_attention(llama, RelevanceCache(4, 3)), pytest.raises(InvalidInput, match=sentence):
        written(llama, prompt, cache_implementation="static")
