"""Runs over HTTP as clients meet them: OpenAI's own client, ours, and plain requests, right and wrong ones."""

from __future__ import annotations

import base64
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from serving_by_hand import serving

import seqwise
from seqwise.client import ServerError
from seqwise.serving.hosting import Limits

openai = pytest.importorskip("openai", reason="OpenAI's client is not installed")


def ask(address: str, route: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and what was answered, read as JSON where it is."""
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    request = Request(address + route, data=raw, headers={"Content-Type": "application/json", **headers})
    try:
        with urlopen(request, timeout=30) as response:
            status, content = response.status, response.read()
    except HTTPError as error:
        status, content = error.code, error.read()
    try:
        return status, json.loads(content)
    except ValueError:
        return status, content.decode()


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as made:
        yield made


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["poems", "gpt", "ngram"])
def test_a_text_is_the_one_that_the_run_writes(client: Any, served_runs: dict[str, Path], name: str) -> None:
    run = seqwise.load(served_runs[name])
    for settings in ({"temperature": 0.0}, {"seed": 5}, {"seed": 6, "temperature": 0.5, "top_p": 0.7}):
        found = client.completions.create(model=name, prompt="the quick", max_tokens=30, **settings)
        search = {k: v for k, v in settings.items() if v}
        method = "sample" if settings.get("temperature", 1) else "greedy"
        expected = run.generate("the quick", method=method, max_tokens=30, **search)
        assert "the quick" + found.choices[0].text == expected
        assert found.choices[0].finish_reason == "length"
        assert found.usage.completion_tokens == 30
        assert found.usage.prompt_tokens == len(run.tokenizer.encode("the quick"))


def test_a_stream_is_the_same_text_in_pieces(client: Any) -> None:
    asked = {"model": "gpt", "prompt": "shall", "max_tokens": 60, "seed": 2, "n": 3}
    whole = client.completions.create(**asked)
    texts, reasons, usage = [""] * 3, [None] * 3, None
    for event in client.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        usage = event.usage or usage
        for choice in event.choices:
            texts[choice.index] += choice.text
            reasons[choice.index] = choice.finish_reason or reasons[choice.index]
    assert texts == [choice.text for choice in whole.choices]
    assert len(set(texts)) == 3
    assert reasons == ["length"] * 3
    assert usage.completion_tokens == whole.usage.completion_tokens == 180


def test_several_prompts_have_texts_of_their_own_as_texts_or_as_ids(client: Any, served_runs: dict[str, Path]) -> None:
    tokenizer, prompts = seqwise.load(served_runs["poems"]).tokenizer, ["the ", "shall I", "a"]
    asked = {"model": "poems", "max_tokens": 12, "temperature": 0}
    found = client.completions.create(prompt=prompts, **asked)
    by_ids = client.completions.create(prompt=[tokenizer.encode(prompt).tolist() for prompt in prompts], **asked)
    alone = [client.completions.create(prompt=prompt, **asked).choices[0].text for prompt in prompts]
    assert [c.text for c in found.choices] == [c.text for c in by_ids.choices] == alone


def test_a_stop_string_ends_a_text_across_tokens_and_is_not_shown(client: Any, served_runs: dict[str, Path]) -> None:
    text = seqwise.load(served_runs["ngram"]).generate("the ", method="greedy", max_tokens=60)[4:]
    stop = text[20:24]
    assert stop not in text[:20]
    asked = {"model": "ngram", "prompt": "the ", "max_tokens": 60, "temperature": 0, "stop": ["never", stop]}
    found = client.completions.create(**asked)
    assert found.choices[0].text == text[: text.index(stop)]
    assert found.choices[0].finish_reason == "stop"
    assert "".join(e.choices[0].text for e in client.completions.create(**asked, stream=True)) == found.choices[0].text


def test_log_probabilities_are_those_of_the_run_and_the_prompt_can_be_echoed(
    client: Any, served_runs: dict[str, Path]
) -> None:
    """As evaluation harnesses ask: nothing written, all of the prompt scored."""
    text = "the quick brown fox"
    found = client.completions.create(model="poems", prompt=text, max_tokens=1, logprobs=3, echo=True, temperature=0)
    choice = found.choices[0]
    num = len(text)
    assert choice.text.startswith(text)
    assert choice.logprobs.tokens[:num] == list(text)
    assert choice.logprobs.text_offset == list(range(num + 1))
    status, scored = ask(
        client.base_url.scheme + "://" + client.base_url.netloc.decode(),
        "/loglikelihood",
        {"model": "poems", "texts": [text]},
    )
    assert status == 200
    assert choice.logprobs.token_logprobs[:num] == pytest.approx(scored["texts"][0]["log_probs"], abs=1e-5)
    assert sum(scored["texts"][0]["log_probs"]) == pytest.approx(scored["texts"][0]["log_likelihood"])
    for best, log_p in zip(choice.logprobs.top_logprobs, choice.logprobs.token_logprobs, strict=True):
        assert max(best.values()) >= log_p - 1e-6


def test_many_at_once_get_each_their_own(client: Any) -> None:
    def one(number: int) -> str:
        asked = {"model": ["poems", "gpt", "ngram"][number % 3], "prompt": "the lazy"[: 1 + number % 8], "seed": number}
        return str(client.completions.create(**asked, max_tokens=5 + number).choices[0].text)

    alone = [one(number) for number in range(24)]
    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(one, range(24))) == alone


def test_a_conversation_needs_a_template_and_follows_it(
    served_runs: dict[str, Path], tmp_path: Path, client: Any
) -> None:
    import shutil

    with pytest.raises(openai.BadRequestError, match="no template for conversations"):
        client.chat.completions.create(model="poems", messages=[{"role": "user", "content": "hi"}])
    run = shutil.copytree(served_runs["poems"], tmp_path / "talks")
    template = (
        "{% for m in messages %}{{ m.role }} {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}a{% endif %}"
    )
    (run / "vocab" / "chat_template.jinja").write_text(template)
    with (
        serving({"talks": run}) as (address, _),
        openai.OpenAI(base_url=f"{address}/v1", api_key="-", max_retries=0) as own,
    ):
        asked = {"model": "talks", "messages": [{"role": "user", "content": "the dog"}], "temperature": 0}
        found = own.chat.completions.create(**asked, max_completion_tokens=9, logprobs=True, top_logprobs=2)
        expected = seqwise.load(run).generate("user the dog\na", method="greedy", max_tokens=9)
        assert "user the dog\na" + found.choices[0].message.content == expected
        assert len(found.choices[0].logprobs.content) == 9
        events = own.chat.completions.create(**asked, max_completion_tokens=9, stream=True)
        assert "".join(event.choices[0].delta.content or "" for event in events) == found.choices[0].message.content
        (run / "vocab" / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}")
        with pytest.raises(openai.BadRequestError, match="does not take these messages"):
            own.chat.completions.create(**asked)


# -- other answers -----------------------------------------------------------------------------------------------------


def test_vectors_are_those_of_the_run(client: Any, served_runs: dict[str, Path]) -> None:
    texts = ["the quick", "shall I"]
    expected = seqwise.load(served_runs["poems"]).embed(texts)
    found = client.embeddings.create(model="poems", input=texts, encoding_format="float")
    assert [each.embedding for each in found.data] == [pytest.approx(row.tolist(), abs=1e-5) for row in expected]
    packed = client.embeddings.create(model="poems", input=texts, encoding_format="base64").data[0].embedding
    values = struct.unpack(f"<{expected.shape[1]}f", base64.b64decode(packed)) if isinstance(packed, str) else packed
    assert list(values) == pytest.approx(expected[0].tolist(), abs=1e-5)


def test_our_client_has_the_verbs_of_a_run(address: str, served_runs: dict[str, Path]) -> None:
    poems, moods = seqwise.connect(address, "poems"), seqwise.connect(address, "moods")
    local = {name: seqwise.load(path) for name, path in served_runs.items()}
    assert poems.models == list(served_runs)
    written = poems.generate("the ", max_tokens=20, seed=3)
    assert written == local["poems"].generate("the ", max_tokens=20, seed=3)
    assert "the " + "".join(poems.stream("the ", max_tokens=20, seed=3)) == written
    assert poems.tokenize(["fox"]) == [local["poems"].tokenizer.encode("fox").tolist()]
    assert poems.inspect("the fox")["family"] == "lstm"
    answers = local["moods"].answer_texts(["a fine day", "a sad dog"])
    for found, expected in zip(moods.predict(["a fine day", "a sad dog"]), answers, strict=True):
        assert found["label"] == expected["label"]
        assert found["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    series = [[float(n % 7)] for n in range(40)]
    forecast = seqwise.connect(address, "waves").forecast(series, horizon=5)
    assert forecast == local["waves"].forecast(series, horizon=5)
    assert len(forecast["middle"]) == 5
    assert all(low < high for (low,), (high,) in zip(forecast["low"], forecast["high"], strict=True))
    with pytest.raises(ServerError, match="does not continue text"):
        moods.generate("a")
    with pytest.raises(ServerError, match="has no answers to give"):
        poems.predict(["a"])
    with pytest.raises(seqwise.ConfigError, match="serves several runs"):
        seqwise.connect(address)


def test_questions_that_come_together_are_joined_and_one_that_fails_fails_alone(address: str) -> None:
    moods = seqwise.connect(address, "moods")
    questions: list[list[Any]] = [[f"a fine day {n}"] if n % 5 else [{"no": "text"}] for n in range(20)]

    def one(asked: list[Any]) -> Any:
        try:
            return moods.predict(asked)
        except ServerError as error:
            return str(error)

    alone = [one(asked) for asked in questions]
    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(one, questions))
    for found, expected in zip(together, alone, strict=True):
        if isinstance(expected, str):
            assert found == expected
        else:
            assert found[0]["label"] == expected[0]["label"]


def test_how_the_server_is(address: str, client: Any) -> None:
    assert ask(address, "/health") == (200, {"status": "ok"})
    assert ask(address, "/ready")[0] == 200
    client.completions.create(model="poems", prompt="a", max_tokens=3)
    status, text = ask(address, "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    values = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert values['seqwise_generated_tokens_total{run="poems"}'] >= 3
    assert values['seqwise_requests_total{route="/v1/completions",status="200"}'] >= 1
    assert values['seqwise_first_token_seconds_count{run="poems"}'] >= 1
    assert values['seqwise_running{run="poems"}'] == 0
    assert values['seqwise_prompt_tokens_read_total{run="poems"}'] >= 1


def test_every_route_is_described_and_every_description_is_a_route(address: str) -> None:
    status, told = ask(address, "/openapi.json")
    assert status == 200
    routes = {"/v1/models", "/v1/models/{name}", "/v1/completions", "/v1/chat/completions", "/v1/embeddings"}
    routes |= {"/predict", "/loglikelihood", "/tokenize", "/inspect", "/health", "/ready", "/metrics"}
    assert set(told["paths"]) == routes
    for path, methods in told["paths"].items():
        for method in methods:
            body = b"{}" if method == "post" else None
            assert ask(address, path.replace("{name}", "poems"), body)[0] != 404


# -- what goes wrong ---------------------------------------------------------------------------------------------------

WRONG = [
    (b"{", 400, "no JSON"),
    (b"\xff\xfe{}", 400, "no JSON"),
    (b'{"a":' * 30_000, 400, "the body"),
    (b'{"model": "poems", "temperature": NaN}', 400, "temperature"),
    (b'{"model": "poems", "prompt": "\\ud800"}', 400, "half a character"),
    ({"model": "nobody"}, 404, 'no run is served as "nobody"'),
    ({}, 400, "several runs are served"),
    ({"model": "poems", "temperature": -1}, 400, "temperature: Input should be greater than or equal to 0"),
    ({"model": "poems", "n": 1_000_000}, 400, "n: "),
    ({"model": "poems", "stop": ["x"] * 1000}, 400, "stop"),
    ({"model": "poems", "max_tokens": 401}, 400, "more than this server writes at once, 400"),
    ({"model": "poems", "prompt": [10_000]}, 400, "is not in the vocabulary"),
    ({"model": "poems", "prompt": "a", "best_of": 5}, 400, "best_of"),
    ({"model": "poems", "prompt": "a", "top_z": 5}, 400, "top_z: is not known here"),
    ({"model": "poems", "prompt": "a", "stream": True, "echo": True}, 400, "do not go together"),
    ({"model": "moods", "prompt": "a"}, 400, "does not continue text; ask /predict"),
    ({"model": "../poems", "prompt": "a"}, 404, "no run is served as"),
]


@pytest.mark.parametrize(("body", "status", "sentence"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_wrong_is_told_in_a_sentence(address: str, body: Any, status: int, sentence: str) -> None:
    found, told = ask(address, "/v1/completions", body)
    assert found == status
    assert sentence in told["error"]["message"]
    assert set(told["error"]) == {"message", "type", "param", "code"}


def test_a_prompt_of_characters_that_were_never_seen_is_answered(address: str) -> None:
    for name in ("poems", "gpt", "ngram"):
        assert (
            ask(address, "/v1/completions", {"model": name, "prompt": "\u4f60\U0001f600\x00", "max_tokens": 3})[0]
            == 200
        )


def test_a_body_that_is_too_large_is_refused(address: str) -> None:
    status, told = ask(address, "/v1/completions", {"model": "poems", "prompt": "a" * 10_000_000})
    assert (status, told["error"]["type"]) == (413, "invalid_request_error")


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
        b"",
    ],
    ids=["headers", "body", "nothing"],
)
def test_a_request_that_never_ends_is_cut_off(address: str, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(sent)
        began, found = time.monotonic(), b""
        while chunk := connection.recv(4096):
            found += chunk
        assert time.monotonic() - began < 10
        assert not found or b" 408 " in found


def test_headers_without_end_are_refused(address: str) -> None:
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        found = b""
        try:
            for _ in range(100):
                connection.sendall(b"X: " + b"a" * 4000 + b"\r\n")
            while chunk := connection.recv(4096):
                found += chunk
        except OSError:  # it was closed already
            pass
        assert not found or b" 400 " in found


def test_a_body_of_another_kind_is_told_so(address: str) -> None:
    status, told = ask(address, "/predict", b"a text", **{"Content-Type": "text/plain"})
    assert status == 400
    assert "Content-Type: application/json" in told["error"]["message"]


def test_pages_of_others_and_other_names_are_refused(address: str) -> None:
    assert ask(address, "/health", Host="evil.example")[0] == 403
    assert ask(address, "/health", Origin="http://evil.example")[0] == 403
    assert ask(address, "/health", Origin="null")[0] == 403
    assert ask(address, "/health", Origin=address)[0] == 200


def test_a_key_is_asked_for_where_there_is_one(served_runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(seqwise.ConfigError, match="needs a key"), serving({"a": served_runs["ngram"]}, host="0.0.0.0"):
        pass
    monkeypatch.setenv("SEQWISE_API_KEY", "secret")
    with serving({"a": served_runs["ngram"]}) as (address, log):
        assert ask(address, "/v1/models")[0] == 401
        assert ask(address, "/v1/models", Authorization="Bearer wrong")[0] == 401
        assert ask(address, "/v1/models", Authorization="Bearer secret")[0] == 200
        assert ask(address, "/health")[0] == 200
        assert seqwise.connect(address).models == ["a"]
    assert [json.loads(line)["status"] for line in log] == [401, 401, 200, 200, 200, 200]
    assert "secret" not in "".join(log)


def test_who_hangs_up_makes_room_for_others(served_runs: dict[str, Path]) -> None:
    limits = Limits(max_rows=1, max_waiting=2, max_tokens=1_000_000, seconds=60)
    with serving({"gpt": served_runs["gpt"]}, limits=limits) as (address, _):
        body = json.dumps({"prompt": "a", "max_tokens": 1_000_000, "stream": True, "seed": 1}).encode()
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20) as connection:
            connection.sendall(head + body)
            assert b"data: " in connection.recv(4096) + connection.recv(4096)
            waiting = [
                threading.Thread(target=ask, args=(address, "/v1/completions", {"prompt": "a"})) for _ in range(2)
            ]
            for thread in waiting:
                thread.start()
            until = time.monotonic() + 20
            while ask(address, "/ready")[0] != 503:
                assert time.monotonic() < until
            status, told = ask(address, "/v1/completions", {"prompt": "a"})
            assert (status, told["error"]["type"]) == (429, "rate_limit_error")
        for thread in waiting:
            thread.join(30)
            assert not thread.is_alive()


def test_a_stream_that_takes_too_long_says_so_in_its_last_event(served_runs: dict[str, Path]) -> None:
    limits = Limits(max_tokens=1_000_000, seconds=1.5)
    with serving({"gpt": served_runs["gpt"]}, limits=limits) as (address, _):
        pieces = seqwise.connect(address).stream("a", max_tokens=1_000_000, seed=1)
        assert next(pieces)
        with pytest.raises(ServerError, match="took longer than a request may"):
            list(pieces)


def test_answers_that_are_asked_for_in_other_ways_are_not_mixed_up(address: str) -> None:
    """Forecasts of other lengths, all at once."""
    waves, series = seqwise.connect(address, "waves"), [float(n % 7) for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda horizon: waves.forecast(series, horizon=horizon), [1, 2, 3] * 5))
    assert [len(each["middle"]) for each in found] == [1, 2, 3] * 5


def test_a_server_that_stops_finishes_what_it_took(served_runs: dict[str, Path]) -> None:
    found: list[tuple[int, Any]] = []
    with serving({"poems": served_runs["poems"]}) as (address, _):
        asked = {"prompt": "a", "max_tokens": 3000, "seed": 1}
        threads = [
            threading.Thread(target=lambda: found.append(ask(address, "/v1/completions", asked))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join(60)
    assert [(status, told["usage"]["completion_tokens"]) for status, told in found] == [(200, 3000)] * 3


def test_two_runs_of_one_name_are_refused(terminal: Any, served_runs: dict[str, Path]) -> None:
    poems = served_runs["poems"]
    code, _, err = terminal.run("serve", poems, f"poems={served_runs['gpt']}")
    assert code == 2
    assert "two runs are named poems" in err
    assert terminal.run("serve", "nowhere")[0] == 2


def test_runs_that_nobody_uses_leave_where_memory_is_short(served_runs: dict[str, Path]) -> None:
    runs = {name: served_runs[name] for name in ("poems", "gpt", "ngram")}
    with serving(runs, limits=Limits(max_memory=1.0)) as (address, _):
        for name in ("poems", "gpt", "poems"):
            assert ask(address, "/v1/completions", {"model": name, "prompt": "a", "max_tokens": 2})[0] == 200
        loaded = [line for line in ask(address, "/metrics")[1].splitlines() if line.startswith("seqwise_loaded")]
        assert sum(line.endswith(" 1") for line in loaded) == 1
