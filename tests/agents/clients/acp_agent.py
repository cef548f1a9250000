"""A small agent of the Agent Client Protocol that asks before it does what its prompt says.

The prompt is a JSON object: `kind` and `path` of a file to write after a permission, or `say`.
"""

import json
import sys


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(**fields: object) -> None:
    send(method="session/update", params={"sessionId": "s1", "update": fields})


def say(text: str) -> None:
    for piece in (text[:3], text[3:]):
        content = {"type": "text", "text": piece}
        update(sessionUpdate="agent_message_chunk", content=content)


def write(kind: str, path: str) -> None:
    call = {"toolCallId": "c1", "title": f"Write {path}", "locations": [{"path": path}]}
    update(sessionUpdate="tool_call", kind=kind, status="pending", **call)
    options = [
        {"optionId": "no", "name": "No", "kind": "reject_once"},
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    ]
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c1"}, "options": options}
    send(id="p1", method="session/request_permission", params=params)
    answer = json.loads(sys.stdin.readline())["result"]["outcome"]
    if answer == {"outcome": "selected", "optionId": "yes"}:
        with open(path, "w") as file:
            file.write("written\n")
    update(sessionUpdate="tool_call_update", toolCallId="c1", status="completed")


for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked["method"], asked["params"]
    if method == "initialize":
        send(id=asked["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
    elif method == "session/new":
        print("not JSON", flush=True)
        send(id=7, method="fs/read_text_file", params={"path": "/etc/passwd"})
        refused = json.loads(sys.stdin.readline())["error"]["code"]
        send(id=asked["id"], result={"sessionId": "s1", "refused": refused})
    elif method == "session/prompt":
        plan = json.loads(params["prompt"][0]["text"])
        if plan.get("fail"):
            send(
                id=asked["id"], error={"code": -32603, "message": "Internal error", "data": "401"}
            )
            continue
        if plan.get("path"):
            write(plan["kind"], plan["path"])
        say(plan["say"])
        usage = {"inputTokens": 200, "cachedReadTokens": 1000, "outputTokens": 24}
        usage["thoughtTokens"] = 16
        result = {"stopReason": plan.get("stop", "end_turn"), "usage": usage}
        send(id=asked["id"], result=result)
