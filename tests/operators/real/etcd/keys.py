"""Keys of real members, written and read past Services, and again until somebody answers."""

import base64

from tests.chaos.live import soon


def write(live, slot, key, value):
    """Write a key.

    Raises:
        MemberError: the member doesn't take it.
    """
    live.tell(slot, "/v3/kv/put", {"key": text(key), "value": text(value)})


def put(live, slot, key, value):
    """Write a key, again until that is acknowledged."""
    soon(lambda: live.tell(slot, "/v3/kv/put", {"key": text(key), "value": text(value)}), f"{slot} takes a write")


def stored(live, slot, key):
    """What a member has under a key."""
    found = soon(lambda: [live.tell(slot, "/v3/kv/range", {"key": text(key)})], f"{slot} is read from")[0]
    return [base64.b64decode(each["value"]).decode() for each in found.get("kvs", [])]


def text(of):
    return base64.b64encode(of.encode()).decode()
