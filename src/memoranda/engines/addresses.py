"""Which addresses may be spoken to, and which hosts are written as what they are.

A name leads where the resolver says. A number has to be written in the one way that everybody reads alike: `0x7f.1`,
`017700000001` and `2130706433` are names of 127.0.0.1 to a resolver and of nothing to a reader, and an address of IPv6
may carry one of IPv4 in it. Both are looked through before anything is compared.
"""

from __future__ import annotations

import ipaddress
import re

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where clouds give away credentials and settings, outside of the link-local block; and all hosts.
_NOWHERE = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192", "168.63.129.16", "255.255.255.255"),
    )
)
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")  # how a resolver knows a number from a name
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?")
_NAT64 = ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.ip_network("::/96")
_TRANSLATED = ipaddress.ip_network("::ffff:0:0:0/96")


def forbidden(address: str) -> bool:
    """Whether nothing of ours can lie at an address: link-local ones (a cloud's metadata service), multicast, none.

    Of an address of IPv6 that leads to one of IPv4, both are asked.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    return any(
        one.is_link_local or one.is_multicast or one.is_unspecified or one in _NOWHERE for one in (ip, *_inside(ip))
    )


def host_is_plain(host: str) -> bool:
    """Whether a host is a name, or an address in the only spelling that it has, and one that may be asked at all."""
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host)) == host.lower() and not forbidden(host)
        except ValueError:
            return False
    if _NUMERIC.fullmatch(host):
        try:
            return str(ipaddress.IPv4Address(host)) == host and not forbidden(host)
        except ValueError:
            return False
    return _NAME.fullmatch(host) is not None


def _inside(ip: Address) -> list[ipaddress.IPv4Address]:
    """The addresses of IPv4 that one of IPv6 leads to: mapped, translated, tunnelled."""
    if isinstance(ip, ipaddress.IPv4Address):
        return []
    found = [one for one in (ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())) if one is not None]
    if any(ip in network for network in (*_NAT64, _TRANSLATED)) or (ip in _COMPATIBLE and int(ip) > 0xFFFF):
        found.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return found
