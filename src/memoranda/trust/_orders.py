"""What orders to a model look like, in English and French (and the commonest one in three more languages).

Each rule is a code, some of whose letters must be in the lower-case text, and a pattern. They are few on purpose: each
new wording that is added here catches itself and little else.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

from memoranda.notes.lazyre import lazy

# Between "ignore" and "instructions": which ones.
_WHICH = (
    r"(?:all|any|every|each|of|the|your|my|our|these|those|its|previous|prior|earlier|above|preceding|foregoing|past"
    r"|existing|original|initial|current|old|other|system|safety|security|developer|content|ethical|and|or)"
)
_RULES = (
    r"(?:instruct\w*|prompts?|rules?|guidelines?|directives?|directions?|commands?|restrictions?|polic(?:y|ies)"
    r"|constraints?|safeguards?|filters?|training|programming|limitations?)"
)
_DATA = (
    r"(?:password|credential|secret|token|api[- ]?key|private key|customer (?:list|data)|user data|conversation"
    r"|chat history|contact|memor(?:y|ie)|file|content|data|record|inbox|database|list|e?mails?)s?"
)
_AWAY = r"(?:https?://|[\w.+-]+@[\w-]+\.\w|\bexternal\b|\battacker|\bmy (?:server|address|e?mail)\b)"
_PERSON = r"(?:the |a |any |my |your )?(?:user|human|anyone|anybody|owner|customer|client)"
_START = r"(?:^[ \t]{0,8}|[.!?:;\"'(\]]\s{0,4}|\b(?:then|now|and|please|must|immediately|to \w+ \w+,)\s)"

_ORDERS: tuple[tuple[str, frozenset[str], re.Pattern[str]], ...] = tuple(
    (code, frozenset(hints), lazy(pattern, re.IGNORECASE | re.MULTILINE))
    for code, hints, pattern in (
        (
            "override",
            ("ignor", "disregard", "forget", "overrid", "bypass", "oubli", "follow", "contourn", "abstraction",
             "olvida", "dimentica", "vergiss", "passe"),
            rf"\b(?:ignor\w*|disregard\w*|forget|overrid\w+|bypass\w*|(?:do not|don't|stop) follow(?:ing)?)"
            rf"(?:\W+{_WHICH}){{0,7}}\W+(?:{_RULES}\b|(?:everything|anything|all|what)\b[^.\n]{{0,30}}"
            r"\b(?:above|before|told|said|previously|earlier|instruct\w+))"
            r"|\b(?:ignor\w*|disregard|forget) (?:the|everything|all(?: of)?(?: the)?) (?:above|preceding)\b"
            r"|\b(?:ignore[rzs]?|oublie[rzs]?|ne (?:suis|suivez|tiens|tenez) (?:pas"
            r"|plus)(?: compte)?|passe[rz]? outre"
            r"|contourne[rz]?|fai(?:s|tes) abstraction d\w+)\b[^.\n]{0,40}?\b(?:instructions|consignes?|directives?"
            r"|règles (?:précédentes|ci-dessus|de sécurité)|ce qui précède)"
            r"|\b(?:ignora|olvida|dimentica|ignoriere|vergiss)\b[^.\n]{0,40}\b(?:instrucc|istruzion|anweisung)\w+",
        ),
        (
            "new_orders",
            ("instruction", "order", "consigne", "directive", "comply", "supersede"),
            r"(?:^|[.!?:\]\"'(]\s{0,4})(?:new|updated?|real|actual|true|additional|hidden|special) (?:system )?"
            r"(?:instructions?|orders?|directives?)\b(?: for (?:the |you|ai|all)[^:\n]{0,40})?\s?:"
            r"|\byou must (?:now )?(?:comply|obey)\b|\bmust comply with every\b"
            r"|\b(?:nouvelles?|vraies?) (?:instructions?|consignes?|directives?)\s?:"
            r"|\binstructions? (?:to|for) (?:the |any |all )?(?:ai|llm|assistant|agent|model|chatbot)s?\b"
            r"|\b(?:directives?|instructions?) supersedes? (?:all|any|every)\b",
        ),
        (
            "role",
            ("system", "developer", "assistant", "admin", "système", "sistema"),
            r"^[ \t>*#\[(<-]{0,6}(?:SYSTEM|System|developer|assistant|système|sistema)(?: (?:message|note|prompt"
            r"|override"
            r"|update|alert|notice|mode|instruction)s?)?[\])>*]{0,3}[ \t]?:[ \t]*(?:\w+\W+){3}"
            r"|<\W?(?:system|admin)(?:[ _-]\w+){0,2}\W?>|\[/?(?:system|admin|developer)(?:[ _-]\w+){0,2}\](?!\])"
            r"|\b(?:system|admin|developer|debug|maintenance|god|root) mode (?:activated|enabled|engaged)\b"
            r"|\b(?:system|security|policy|safety) override\b|### ?(?:system|instruction)s?:?\s*$"
            r"|\b(?:note|message|consigne|instruction)s? (?:du système|système|del sistema|di sistema)\s?:",
        ),
        (
            "persona",
            ("you are", "pretend", "jailb", "anything now", "restrict", "from now", "désormais", "à partir de",
             "filter", "without any", "tu es", "vous êtes", "uncensored"),
            r"\byou are (?:now|no longer) (?:an?|the|in|my|bound|free|acting|dan|called|unrestricted|operating)\b"
            r"|\bfrom (?:now|this point) on,? you (?:are|will|must|shall|have)\b|\bdo anything now\b|\bjailbroken\b"
            r"|\b(?:unrestricted|unfiltered|uncensored|amoral) (?:ai|assistant|mode|model|chatbot|persona|version)\b"
            r"|\b(?:without|no|free (?:of|from)) (?:any |all |your )?(?:ethical|moral|safety|content) (?:restrict"
            r"|guideline"
            r"|filter|constraint|limit)|\byou have no (?:restrict|filter|limit|rules)|\b(?:tu es"
            r"|vous êtes) (?:maintenant"
            r"|désormais) (?:une?|le|la|en|libre|dan)\b|\b(?:désormais|à partir de maintenant),? (?:tu|vous) (?:es"
            r"|êtes|dois"
            r"|devez|vas|allez|réponds|répondez)\b|\bpretend (?:that )?you(?:'re| are| have) (?:not"
            r"|no) (?:\w+ )?(?:restrict"
            r"|rules?|limit)",
        ),
        (
            "prompt_leak",
            ("prompt", "instruction", "consigne", "system message"),
            r"\b(?:reveal|show|print|repeat|output|display|leak|expose|disclose|recite|dump|tell me|give me"
            r"|write (?:out|down)"
            r"|what (?:is|are|was|were)|révèle[rz]?|affiche[rz]?|montre[rz]?|répète[rz]?|donne[rz]?(?:-moi)?"
            r"|recopie[rz]?)\b"
            r"[^.\n]{0,40}?\b(?:system (?:prompt|message)|(?:your|tes"
            r"|vos) (?:\w+ )?(?:prompts?|instructions?|consignes?)\b"
            r"|(?:initial|original|hidden|developer) (?:prompt|instructions)|prompt (?:système|initial|caché))",
        ),
        (
            "exfiltration",
            ("send", "forward", "upload", "post", "exfiltrat", "leak", "mail", "envo", "transm", "transf",
             "submit", "!["),
            rf"\b(?:send|forward|upload|e-?mail|post|transmit|exfiltrate|leak|submit|bcc)\b(?=[^\n]{{0,200}}?{_AWAY})"
            rf"[^.\n]{{0,80}}?\b(?:{_DATA}|them|it|this)\b[^\n]{{0,80}}?\bto\b"
            r"|\b(?:envoie|envoyez|envoyer|transmets|transmettez|transfère[rz]?)(?:-les?|-la)?\b[^\n]{0,100}?"
            r"(?:https?://|\S+@\S+\.\w|adresse externe|attaquant)|\bexfiltrat\w+ [^.\n]{0,60}\b(?:to|data|via|vers)\b"
            r"|!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,200}[?&][^)\s=]{1,30}=(?:\{|\[|<|%7B|\$)",
        ),
        (
            "memory_command",
            ("remember", "memor", "mémoris", "souv", "reti", "store", "save", "reviewed", "rete", "enregistre", "note"),
            rf"{_START}(?:remember|memori[sz]e|store|save|record|note)\b[^.\n!?]{{0,20}}?\b(?:that|this"
            rf"|the following|for all"
            r" future|permanently|forever|in your (?:long-term )?memory)\b[^.\n!?]{0,200}?\b(?:always|never|must"
            r"|whenever"
            r"|every time|ignore|trusted|without (?:asking|review|confirm\w*|approval)|(?:is|are"
            r"|has been) (?:authori[sz]ed"
            r"|approved|verified|exempt|an? admin\w*))\b"
            rf"|{_START}(?:souviens-toi|souvenez-vous|retiens|retenez"
            rf"|mémorise[rz]?|enregistre[rz]?|note[rz]?)\b[^.\n!?]{{0,20}}?"
            r"\b(?:que|qu'|ceci|bien|pour la suite)[^.\n!?]{0,200}?\b(?:toujours|jamais|dois|devez|doit|ignore[rz]?"
            r"|sans (?:demander|confirm\w+|relecture|revue)|à chaque fois|autorisée?s?)\b"
            r"|\b(?:add|write|save|commit|insert) (?:this|the following|it)\b[^.\n]{0,40}\b(?:to|into|in) (?:your "
            r"|the"
            r" |long-term )*(?:memory|memories|memory\.md)\b|\bthis (?:note|memory|fact|entry) (?:is|was"
            r"|has been) (?:already"
            r" )?(?:reviewed|approved|verified)\b|^reviewed\s*:\s*true\b",
        ),
        (
            "delayed_trigger",
            ("user", "human", "asked", "customer", "client", "utilisateur", "someone", "anyone", "quelqu'un"),
            r"\b(?:when(?:ever)?|if|next time|each time|every time|as soon as|once) (?:the |a |any )?(?:user|human"
            r"|customer"
            r"|client|someone|anyone|you(?: are|'re)? asked)\b[^.\n]{0,100}?,?\s(?:then )?(?:you (?:must|should|will"
            r"|shall)"
            r"|always|never|call|execute|invoke|delete|forward|transfer|recommend|insert|append|do not (?:tell"
            r"|mention)"
            r"|don't (?:tell|mention)|without (?:telling|mentioning|asking))\b"
            r"|\b(?:quand|lorsque|dès que|si|la prochaine fois que) (?:l'utilisateur|le client|quelqu'un|on te"
            r"|on vous)\b"
            r"[^.\n]{0,100}?\b(?:tu dois|vous devez|toujours|appelle|exécute|envoie|supprime|transfère)\b",
        ),
        (
            "hidden_action",
            ("tell", "inform", "notify", "mention", "alert", "respon", "answer", "reply", "silently", "secretly",
             "sans", "ne d", "ne p", "ne m", "réponse", "covertly"),
            rf"\b(?:do not|don't|never|without) (?:tell|inform|alert|notify|mention|telling|informing|alerting"
            rf"|notifying"
            rf"|mentioning)\b[^.\n]{{0,40}}?\b(?:{_PERSON}|this to)\b"
            r"|\bbefore (?:responding|answering|replying)\b|\b(?:silently|secretly|covertly) (?:call|run|execute"
            r"|send|delete"
            r"|forward|add|append|insert|change|replace|copy)\b"
            r"|\b(?:at the (?:end|start|beginning) of|in|into|to) (?:every|any|each|all|your) (?:response|reply"
            r"|answer"
            r"|output)s?\b|\b(?:enhance|end|begin|start|finish|conclude|modify|alter) (?:your|every"
            r"|each) (?:response|reply"
            r"|answer|output)s?\b|\b(?:sans (?:le )?(?:dire|prévenir|mentionner|informer)|ne (?:dis|dites|préviens"
            r"|prévenez"
            r"|mentionne[sz]?|révèle[sz]?) (?:pas|rien|jamais))\b[^.\n]{0,30}?\b(?:l'utilisateur|à personne"
            r"|à quiconque)"
            r"|\b(?:à la fin|au début) de (?:ta|votre|chaque|toute) réponse\b",
        ),
        (
            "tool_order",
            ("call ", "invoke", "run ", "execute", "use ", "appelle", "exécute", "lance"),
            rf"{_START}(?:call|invoke|execute|run|trigger|use)\s+(?:the )?(?:tool |function "
            rf"|command )?[`'\"]?(?:[a-z]+_[a-z_]+\b"
            r"|rm -|curl |wget |sudo )|\b(?:appelle[rz]?|exécute[rz]?|lance[rz]?) (?:l'outil |la fonction "
            r"|la commande )"
            r"[`'\"]?(?:[a-z]+_[a-z_]+|rm -|curl )",
        ),
        (
            "forged_boundary",
            ("end", "begin", "start", "fin ", "début"),
            r"(?:[-=#*]{3}|<<|\[)[ \t]{0,3}(?:end|begin|start|fin|début)(?: of"
            r"| de[s]?| du)?\s+(?:the )?(?:untrusted"
            r"|external|user|retrieved|recalled|document|data|context|memory|memories|input|system"
            r"|instructions?|données"
            r"|contexte|mémoire|tool)\b",
        ),
    )
)  # fmt: skip

# For the patterns whose hints are common words: each of their alternatives holds one of these as well.
_NEEDS = {
    "forged_boundary": ("[", "<<", *(a + b for a in "-=#*" for b in "-=#*")),
    "hidden_action": ("not ", "n't", "never", "without", "respon", "answer", "reply", "output", "silently", "secretly",
                      "covertly", "sans ", "ne d", "ne p", "ne m", "ne r", "réponse"),
    "exfiltration": ("http", "@", "extern", "attack", "attaquant", "my server", "my address", "my email", "my mail",
                     "exfiltrat"),
    "tool_order": ("_", "rm -", "curl ", "wget ", "sudo "),
    "memory_command": ("always", "never", "must", "whenever", "every time", "ignore", "trusted", "without ", "auth",
                       "approved", "verified", "exempt", "admin", "toujours", "jamais", "dois", "devez", "doit",
                       "sans ", "à chaque fois", "autoris", "memor", "reviewed"),
}  # fmt: skip
_HINTS = tuple(sorted(frozenset[str]().union(*(hints for _, hints, _ in _ORDERS))))
_LONG = 800  # characters of a text from which on numpy is faster, where it is imported


def hints_in(low: str, among: Sequence[str] = _HINTS) -> list[str]:
    """Which of the letters that rules cannot do without stand in a text in lower case."""
    if among is _HINTS and len(low) >= _LONG and "numpy" in sys.modules:
        from memoranda.trust._triples import may_hold

        among = may_hold(low, _HINTS)
    return [hint for hint in among if hint in low]


def orders(text: str, among: Sequence[str] = _HINTS) -> Iterator[str]:
    """The codes of the rules that a folded text meets, in a fixed order; `among` are the only hints it may hold."""
    low = text.lower()
    if present := hints_in(low, among):
        for code, hints, pattern in _ORDERS:
            if not hints.isdisjoint(present) and _needed(code, low) and pattern.search(text):
                yield code


def _needed(code: str, low: str) -> bool:
    """Whether one of the letters stands there that a costly pattern cannot do without besides its hints."""
    needs = _NEEDS.get(code)
    return needs is None or any(letters in low for letters in needs)
