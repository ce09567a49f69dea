"""What names an account's own things in a cloud: no key, but what an attacker asks for first.

Resource names (ARN) and the numbers of accounts at AWS, the addresses of whole buckets (one file in a bucket is a link
like any other), the ids of OAuth clients at Google, the marker of a service account's key file, and the logins that
are built into a web page. Scanners of secrets list them, so they are refused here as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust._hints import anywhere
from memoranda.trust._values import is_variable

Hit = tuple[str, int, int]  # kind, start, end

_RULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, hint, lazy(pattern))
    for kind, hint, pattern in (
        # A policy of AWS itself has `aws` in the place of the account and is the same for everybody.
        ("cloud_resource", "arn:aws", r"\b(?P<value>arn:aws(?:-[a-z-]{2,8})?:[a-z0-9-]{2,30}:[a-z0-9-]{0,20}:"
         r"(?:\d{12})?:(?![${<%])[^\s\"'<>]+[^\s\"'<>.,;:)])"),
        *(
            ("cloud_account", hint, rf"(?i:\b{hint}_?id)[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?(?P<value>\d{{12}})(?!\d)")
            for hint in ("awsaccount", "aws_account")
        ),
        ("cloud_bucket", "amazonaws.com", r"(?<![\w.-])(?P<value>[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?"
         r"\.s3(?:[.-][a-z0-9-]{2,20})?\.amazonaws\.com)(?![\w.-]|/[^\s\"'<>])"),
        ("cloud_bucket", "amazonaws.com", r"(?<![\w.-])s3(?:[.-][a-z0-9-]{2,20})?\.amazonaws\.com/"
         r"(?P<value>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?![\w.-]|/[^\s\"'<>])"),
        ("cloud_bucket", "storage.googleapis.com", r"(?<![\w.-])(?P<value>[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?"
         r"\.storage\.googleapis\.com)(?![\w.-]|/[^\s\"'<>])"),
        ("oauth_client", "googleusercontent.com", r"\b(?P<value>\d{8,14}-[a-z0-9]{20,40}"
         r"\.apps\.googleusercontent\.com)\b"),
        ("oauth_client", "twitter", r"(?i:twitter[\w.-]{0,20}(?:id|key))[\"']?\s{0,20}[:=]\s{0,20}[\"']?"
         r"(?P<value>(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{18,25})\b"),
        ("service_account", "service_account", r"[\"']type[\"']\s{0,3}:\s{0,3}[\"'](?P<value>service_account)[\"']"),
        ("login", "react_app_", r"\bREACT_APP_(?:[A-Z0-9]+_)*USER(?:NAME)?[ \t]*=[ \t]*[\"']?"
         r"(?P<value>[^\s\"'#$]{3,64})"),
    )
)  # fmt: skip
HINTS = anywhere(*(hint for _, hint, _ in _RULES), beginning=[hint for _, hint, _ in _RULES if hint != "twitter"])


def find(text: str, held: int) -> Iterator[Hit]:
    """Names of an account's things; `held` are the text's hints."""
    if not held & HINTS.mask:
        return
    for (kind, _, pattern), (bit, _) in zip(_RULES, HINTS.each, strict=True):
        if held & bit:
            for match in pattern.finditer(text):
                if not is_variable(match["value"]):
                    yield kind, *match.span("value")
