"""Asks a model one question: python -m outlay.agents.ask REQUEST, as its own process.

REQUEST is a JSON file: `prompt`, `schema` (may be empty), `model`, `api`, `url` (may be empty).
The key is in the environment. Standard output is JSON lines: `usage` after every response,
`refused` where a server does not know schemas, and last an `answer` or a `failure`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from outlay.agents.clients.lines import why

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

KEY = "OUTLAY_MODEL_KEY"
"""Variable that holds the key."""

MISSING = (
    "asking a model needs the package pydantic-ai-slim: pip install 'outlay[models]', "
    "or let a coding agent draft the plans"
)

_MOST_ANSWER = 1_000_000
"""Bytes of an answer as JSON text; a line that is longer would not be read whole."""

_NO_SCHEMAS = (400, 404, 415, 422, 500, 501)
"""Statuses by which servers say that they do not take a schema."""


def main() -> int:
    """Ask, print what came, and return the exit code."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m outlay.agents.ask REQUEST\n")
        return 2
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        import pydantic_ai  # noqa: F401 - only whether it is there
    except ImportError:
        return _fail("agent", MISSING)
    from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError, UserError

    try:
        response = _answer(_model(request), request["prompt"], request["schema"])
    except ModelHTTPError as error:
        return _fail(why(str(error), error.status_code), str(error))
    except ModelAPIError as error:
        return _fail("provider", str(error))
    except (AgentRunError, UserError, ImportError) as error:
        return _fail("agent", str(error))
    except Exception as error:  # the library raises anything where a server sends anything
        name = type(error).__name__
        return _fail("agent", f"what the server sent is no answer of a model: {name}: {error}")
    text = response.text or ""
    if (size := len(json.dumps(text))) > _MOST_ANSWER:
        return _fail("agent", f"the answer has {size:,} bytes, allowed: {_MOST_ANSWER:,}")
    _print(type="answer", text=text, finish=response.finish_reason or "")
    return 0


def _answer(model: Model, prompt: str, schema: str) -> ModelResponse:
    """Return the response; a server that refuses the schema is told it in words instead."""
    from pydantic_ai.exceptions import ModelHTTPError, UserError

    if not schema:
        return _ask(model, prompt, _parameters("text", ""))
    try:
        return _ask(model, prompt, _parameters("native", schema))
    except ModelHTTPError as error:
        spent = why(str(error), error.status_code) == "budget"
        if spent or error.status_code not in _NO_SCHEMAS:
            raise
        _print(type="refused", text=str(error))
    except UserError as error:
        _print(type="refused", text=str(error))
    return _ask(model, prompt, _parameters("prompted", schema))


def _ask(model: Model, prompt: str, parameters: ModelRequestParameters) -> ModelResponse:
    from pydantic_ai.direct import model_request_sync
    from pydantic_ai.messages import ModelRequest

    messages = [ModelRequest.user_text_prompt(prompt)]
    response = model_request_sync(model, messages, model_request_parameters=parameters)
    usage = response.usage
    _print(
        type="usage",
        input=usage.input_tokens,
        cached=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        output=usage.output_tokens,
        reasoning=usage.details.get("reasoning_tokens", 0),
    )
    return response


def _parameters(
    mode: Literal["text", "native", "prompted"], schema: str
) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition

    if not schema:
        return ModelRequestParameters(output_mode=mode)
    form = OutputObjectDefinition(json_schema=json.loads(schema), name="answer", strict=True)
    return ModelRequestParameters(output_mode=mode, output_object=form)


def _model(request: dict[str, Any]) -> Model:
    """Return the model; without an address, address and key of its own environment variables."""
    name, url = request["model"], request["url"]
    # A local server takes any key, but the library takes no empty one.
    key = os.environ.get(KEY) or ("none" if url else None)
    if request["api"] == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        there = AnthropicProvider(base_url=url, api_key=key) if url else AnthropicProvider()
        return AnthropicModel(name, provider=there)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    server = OpenAIProvider(base_url=f"{url}/v1", api_key=key) if url else OpenAIProvider()
    return OpenAIChatModel(name, provider=server)


def _fail(reason: str, text: str) -> int:
    _print(type="failure", reason=reason, text=text)
    return 1


def _print(**fields: object) -> None:
    line = json.dumps(fields)
    if key := os.environ.get(KEY):
        line = line.replace(key, "***")
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
