"""What is asked and answered, as JSON: the OpenAPI page is made of these.

Fields that others know and that would change nothing here are read and left aside; those that would change the answer,
and that no run does, are refused by name.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_STOPS, MAX_CHOICES, MAX_ALTERNATIVES, MAX_PROMPTS = 16, 64, 20, 64
MAX_SEED = (1 << 63) - 1


def _is_text(given: Any) -> Any:
    """Half of a pair of surrogates is no character, and no tokenizer reads it."""
    if isinstance(given, str):
        try:
            given.encode()
        except UnicodeEncodeError:
            raise ValueError("the text holds half a character (a lone surrogate)") from None
    return given


Text = Annotated[str, BeforeValidator(_is_text)]
Zero = Annotated[float, Field(ge=0, le=0)]
TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    model: Text | None = Field(None, description="Name of the run; may be left out where one is served.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    include_usage: bool = Field(False, description="Send one more event at the end, with the number of tokens.")
    include_obfuscation: bool = Field(False, description="Read and left aside.")


class Writing(Asked):
    """How a text goes on."""

    max_tokens: int | None = Field(None, ge=0, description="Tokens to add at most.")
    min_tokens: int = Field(0, ge=0, description="Tokens before the text may end.")
    temperature: float = Field(1.0, ge=0, le=100, description="0: always the most probable token.")
    top_p: float = Field(1.0, gt=0, le=1)
    top_k: int | None = Field(None, ge=1)
    repetition_penalty: float = Field(1.0, gt=0, le=100)
    seed: int | None = Field(None, ge=0, le=MAX_SEED, description="The same seed gives the same text.")
    n: int = Field(1, ge=1, le=MAX_CHOICES, description="Texts for each prompt.")
    stop: Text | Annotated[list[Text], Field(max_length=MAX_STOPS)] | None = Field(
        None, description="Strings that end a text; they are not part of it."
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    presence_penalty: Zero = 0.0
    frequency_penalty: Zero = 0.0
    logit_bias: dict[str, float] | None = Field(None, max_length=0)
    user: str | None = None

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())


class CompletionAsked(Writing):
    prompt: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=MAX_PROMPTS)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS)]
    ) = Field("", description="Text, token ids, or several of either.")
    logprobs: int | None = Field(None, ge=0, le=MAX_ALTERNATIVES, description="So many alternatives at each place.")
    echo: bool = Field(False, description="Give the prompt back too, with its log-probabilities where asked for.")
    best_of: int | None = Field(None, ge=1, le=1)
    suffix: None = None

    @property
    def prompts(self) -> list[str | list[int]]:
        prompt: Any = self.prompt
        return list(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: Text


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Text
    content: Text | list[Part] | None = None
    name: Text | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ChatAsked(Writing):
    messages: list[Message] = Field(min_length=1, max_length=1000)
    max_completion_tokens: int | None = Field(None, ge=0)
    logprobs: bool = False
    top_logprobs: int | None = Field(None, ge=0, le=MAX_ALTERNATIVES)


class EmbeddingsAsked(Asked):
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = None
    user: str | None = None


class PredictAsked(Asked):
    inputs: list[Any] = Field(
        min_length=1,
        max_length=2048,
        description="A text for each answer; [first, second] for pairs of texts; {question, context} for spans; a list "
        "of rows of numbers for forecasts.",
    )
    horizon: int = Field(10, ge=1, le=10_000, description="Forecasts: steps ahead.")
    beam: int = Field(5, ge=1, le=64, description="Translations: width of the beam.")
    num: int = Field(1, ge=1, le=20, description="Answers for each, where a model ranks several.")


class TextsAsked(Asked):
    texts: list[Text] = Field(min_length=1, max_length=256)


class InspectAsked(Asked):
    text: Text = Field(description="What the model reads.")
