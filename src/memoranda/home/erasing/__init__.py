"""Taking a text out of a Home's whole history: found (`prepare`, `survey`, `needles`), written anew (`rewrite`,
`redact`, `blanking`), decided (`plan`), led over and gone (`finish`, `purge`); `erasures` tells where old ids lead."""
