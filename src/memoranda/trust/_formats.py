"""Tokens by their form: what their makers begin them with.

What `redact-secret` knows stays with it; here is what it does not know, or knows only beside a name. The text is folded
already. Each rule names a few letters that it cannot do without, so that most rules never run on most texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memoranda.notes.lazyre import lazy
from memoranda.trust._hints import Heads, Hit, head, is_within
from memoranda.trust._values import is_dummy

_LONG = lazy(r"\S{20,}")  # no token is shorter
_BEGIN, _END = r"(?<![A-Za-z0-9_.])", r"(?![A-Za-z0-9])"


def _made(pattern: str) -> re.Pattern[str]:
    """A token that stands alone."""
    return lazy(rf"{_BEGIN}(?:{pattern}){_END}")


# By maker: letters that must be there (one of several), the whole token. Lengths are the makers' own where they tell
# them, a lower bound where they do not.
_TOKENS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (kind, hint, _made(pattern))
    for kind, hint, pattern in (
        ("mem0_api_key", "m0sk_", r"m0sk_[A-Za-z0-9_-]{16,}"),
        ("mem0_api_key", "m0-", r"m0-[A-Za-z0-9]{32,}"),
        ("aws_access_key_id", "A3T", r"A3T[A-Z0-9]{17}"),
        ("aws_bedrock_key", "ABSK", r"ABSK[A-Za-z0-9+/]{109,269}={0,2}"),
        ("aws_bedrock_key", "bedrock-api-key-", r"bedrock-api-key-[A-Za-z0-9+/=]{60,}"),
        ("aws_appsync_key", "da2-", r"da2-[a-z0-9]{26}"),
        ("age_secret_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
        ("airtable_token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
        ("alibaba_key", "LTAI", r"LTAI[A-Za-z0-9]{17,21}"),
        ("anthropic_api_key", "sk-ant-", r"sk-ant-(?:(?:api|admin)\d\d-[A-Za-z0-9_-]{93}AA"
         r"|(?!api|admin)[a-z0-9]{3,10}-[A-Za-z0-9_-]{30,})"),
        ("artifactory_key", "AKC", r"AKC[A-Za-z0-9]{60,}"),
        ("artifactory_key", "cmVmdGtu", r"cmVmdGtu[A-Za-z0-9]{50,}"),
        ("atlassian_token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{100,}"),
        ("bitlocker_key", "-", r"\d{6}(?:-\d{6}){7}"),
        ("blynk_client", "oa2-client-id_", r"oa2-client-id_[A-Za-z0-9_-]{32}:[A-Za-z0-9]{40}"),
        ("clojars_token", "CLOJARS_", r"CLOJARS_[a-z0-9]{60}"),
        ("cloudflare_key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
        ("defined_networking_token", "dnkey-", r"dnkey-[a-z0-9=_-]{26}-[a-z0-9=_-]{52}"),
        ("dependency_track_key", "odt_", r"odt_[A-Za-z0-9]{32,40}"),
        ("discord_webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{15,20}/[A-Za-z0-9_-]{50,}"),
        ("docker_token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
        ("doppler_token", "dp.", r"dp\.(?:ct|pt|st|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
        ("dropbox_token", "sl.", r"sl\.[A-Za-z0-9_-]{100,}"),
        ("duffel_token", "duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
        ("dynatrace_token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
        ("easypost_key", "EZA EZT", r"EZ[AT]K[A-Za-z0-9]{54}"),
        ("facebook_token", "EAA", r"EAA[A-Za-z0-9]{90,}"),
        ("facebook_token", "|", r"\d{15,16}\|[A-Za-z0-9_-]{27,40}"),
        ("firecrawl_key", "fc-", r"fc-[a-f0-9]{32}"),
        ("flutterwave_key", "FLW", r"FLW(?:PUB|SEC)K(?:_TEST)?-[a-zA-Z0-9]{12,}(?:-X)?"),
        ("flyio_token", "fo1_", r"fo1_[\w-]{43}"),
        ("flyio_token", "fm1 fm2", r"fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,3}"),
        ("frameio_token", "fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),
        ("gitlab_token", "glp glr gld glc glf gli gls gla glo",
         r"gl(?:pat|ptt|rt|dt|cbt|ft|imt|soat|agent|oas)-[A-Za-z0-9_.-]{20,}"),
        ("gitlab_token", "GR1348941", r"GR1348941[A-Za-z0-9_-]{20}"),
        ("google_api_key", "AIzaSy", r"AIzaSy[A-Za-z0-9_-]{33}"),
        ("google_refresh_token", "1//", r"1//0[A-Za-z0-9_-]{30,}"),
        ("google_access_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}"),
        ("grafana_token", "glc_ glsa_", r"gl(?:c|sa)_[A-Za-z0-9+/_]{32,}={0,2}"),
        ("grafana_token", "eyJr", r"eyJrIjoi[A-Za-z0-9]{60,}={0,2}"),
        ("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{48,56}"),
        ("harness_token", "pat.", r"pat\.[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
        ("harness_token", "sat.", r"sat\.[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
        ("heroku_key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{36,}"),
        ("hubspot_token", "pat-", r"pat-(?:na|eu)\d-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
        ("infracost_key", "ico-", r"ico-[A-Za-z0-9]{32}"),
        ("intra42_secret", "s-s4t2", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
        ("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
        ("linear_key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
        ("mailgun_key", "key-", r"key-[a-f0-9]{32}"),
        ("mapbox_token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
        ("mapbox_token", "tk.eyJ", r"tk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
        ("maxmind_key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
        ("msteams_webhook", ".com/webhook", r"[a-z0-9.-]*office\.com/webhook(?:b2)?/[a-f0-9@-]{73}/\w+/[a-f0-9/-]{69}"),
        ("newrelic_key", "NRA NRB NRI NRM NRR NRS NRJ", r"NR(?:AK|AA|BR|II|IQ|MA|RA|SP|JS)-[A-Za-z0-9_-]{15,48}"),
        ("newrelic_key", "px-", r"px-(?:api|dep)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"),
        ("newrelic_license", "NRAL", r"[a-z0-9]{36}NRAL"),
        ("newrelic_license", "eu01xx", r"eu01xx[a-f0-9]{34,36}"),
        ("newrelic_license", "us01xx", r"us01xx[a-f0-9]{34,36}"),
        ("notion_token", "ntn_", r"ntn_\d{11}[A-Za-z0-9]{35}"),
        ("nuget_key", "oy2", r"oy2[a-z0-9]{43}"),
        ("octopus_key", "API-", r"API-[A-Z0-9]{25,30}"),
        ("onepassword_secret_key", "A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}"),
        ("onepassword_token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/]{250,}={0,3}"),
        ("openai_api_key", "sk-", r"sk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}"),
        ("openshift_token", "sha256~", r"sha256~[A-Za-z0-9_-]{43}"),
        ("plaid_token", "access-", r"access-(?:sandbox|development|production)-[a-f0-9-]{36}"),
        ("planetscale_token", "pscale_", r"pscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{32,64}"),
        ("prefect_key", "pnu_", r"pnu_[A-Za-z0-9]{36}"),
        ("pypi_token", "pypi-", r"pypi-AgE[A-Za-z0-9_-]{50,}"),
        ("readme_key", "rdme_", r"rdme_[a-z0-9]{70}"),
        ("replicate_token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
        ("salesforce_token", "00D", r"00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}"),
        ("scalingo_token", "tk-us-", r"tk-us-[\w-]{48}"),
        ("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{39,50}"),
        ("brevo_key", "xkeysib-", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
        ("sentry_token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_]{40,}"),
        ("settlemint_token", "sm_", r"sm_(?:pat|sat|aat)_[A-Za-z0-9]{16}"),
        ("shippo_token", "shippo_", r"shippo_(?:live|test)_[a-f0-9]{40}"),
        ("shopify_token", "shp", r"shp(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{32}"),
        ("slack_token", "xox", r"xox[abeoprs](?:\.xox[bp])?-(?:\d-)?(?:\d{8,14}-){1,3}[A-Za-z0-9]{18,}"),
        ("slack_token", "xapp-", r"xapp-(?:\d-[A-Z0-9]+-\d+-[a-f0-9]{40,}|\d{9,14}-[A-Za-z0-9/+]{20,})"),
        ("slack_webhook", "hooks.slack.com/", r"hooks\.slack\.com/[a-z]{8,9}/\w{8,12}/\w{8,14}/(?:\d+/)?\w{20,}"),
        ("sourcegraph_token", "sgp_", r"sgp_(?:[A-Fa-f0-9]{15,16}_|local_)?[A-Fa-f0-9]{40}"),
        ("sourcegraph_token", "slk_", r"slk_[a-f0-9]{64}"),
        ("segment_token", "sgp_", r"sgp_[A-Za-z0-9]{64}"),
        ("square_token", "sq0", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,43}"),
        ("stackhawk_key", "hawk.", r"hawk\.[A-Za-z0-9_-]{20}\.[A-Za-z0-9_-]{20}"),
        ("stripe_key", "sk_", r"sk_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
        ("stripe_key", "rk_", r"rk_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
        ("stripe_webhook_secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
        ("tavily_key", "tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}"),
        ("teamcity_token", "eyJ0eXAiOiAiVENWMiJ9", r"eyJ0eXAiOiAiVENWMiJ9\.[A-Za-z0-9_-]{36}\.[A-Za-z0-9_-]{48}"),
        ("thingsboard_token", "/api/v1/", r"[a-z.]*thingsboard\.[a-z.]+/api/v1/[a-z0-9]{20}"),
        ("truenas_key", "-", r"\d{1,3}-[A-Za-z0-9]{64}"),
        ("twilio_key", " ".join(f"SK{char}" for char in "0123456789abcdefABCDEF"), r"SK[a-fA-F0-9]{32}"),
        ("twitch_stream_key", "live_", r"live_\d{6,10}_[A-Za-z0-9]{28,32}"),
        ("typeform_token", "tfp_", r"tfp_[A-Za-z0-9_=.-]{59}"),
        ("vercel_token", "vcp vck vci vca vcr", r"vc[pkiar]_[A-Za-z0-9]{56,}"),
        ("xai_key", "xai-", r"xai-[A-Za-z0-9]{70,}"),
        ("yandex_token", "t1.", r"t1\.[A-Za-z0-9_-]{10,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
        ("yandex_token", "AQVN", r"AQVN[A-Za-z0-9_-]{35,38}"),
        ("zapier_webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch/\d+/[a-z0-9]{5,}"),
    )
)  # fmt: skip


# Whose tokens are told in full above: what begins like one and goes on otherwise is an example, or cut short, unless a
# word before it says that it is meant.
_TOLD = ("sk-ant-", "sgp_", "xox", "AIza", "ABSK")
_SAID = lazy(r"key|token|secret|bearer|cl[ée]|jeton", re.IGNORECASE)

# Most rules are asked where a run begins as their tokens do; of a few, letters within are known.
_WITHIN = [rule for rule in _TOKENS if rule[1][:1] in "_./" or rule[1] == "NRAL"]
_NUMBERED = [rule for rule in _TOKENS if rule[1] in ("-", "|")]
_NUMBER = lazy(r"-(?:[A-Za-z0-9]{64}|\d{6}-\d{6}-)")
_BY_HEAD: dict[bytes, list[tuple[str, str, re.Pattern[str]]]] = {}
for _rule in _TOKENS:
    if _rule not in _WITHIN and _rule not in _NUMBERED:
        for _letters in _rule[1].split():
            _BY_HEAD.setdefault(head(_letters), []).append((_rule[0], _letters, _rule[2]))


def find(text: str, heads: Heads, known: Sequence[Hit] = ()) -> Iterator[Hit]:
    """Tokens that stand alone in the text, wherever they stand; `heads` are those of its long words.

    What lies in one that is `known` by its maker already adds nothing.
    """
    for kind, start, end in _all(text, heads):
        if not is_within(start, end, known) and not is_dummy(text[start:end]):
            yield kind, start, end


def _all(text: str, heads: Heads) -> Iterator[Hit]:
    for begun in _BY_HEAD.keys() & heads:
        for kind, letters, pattern in _BY_HEAD[begun]:
            at = text.find(letters)
            while at >= 0:
                match = pattern.match(text, at)
                if match is not None:
                    yield kind, *match.span()
                at = text.find(letters, at + 1)
    rules = [rule for rule in _WITHIN if rule[1] in text]
    if "|" in text or _NUMBER.search(text):
        rules += _NUMBERED
    if rules:
        for word in _LONG.finditer(text):
            for kind, letters, pattern in rules:
                if letters in word.group():
                    yield from ((kind, *match.span()) for match in pattern.finditer(text, *word.span()))


def can_be(text: str, start: int) -> bool:
    """Whether what begins here can be the token that it begins like."""
    if not text.startswith(_TOLD, start):
        return True
    line = text.rfind("\n", 0, start) + 1
    return _SAID.search(text, max(line, start - 80), start) is not None
