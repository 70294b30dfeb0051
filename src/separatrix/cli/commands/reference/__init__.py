"""Commands that look things up: citations, errata, data sets, versions."""
