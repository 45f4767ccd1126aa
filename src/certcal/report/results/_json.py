"""Plain values for JSON, and how bins are closed in words."""

from certcal._json import as_text as as_text
from certcal._json import for_json as for_json

BRACKETS = {"left": "[a, b), the last one closed", "right": "(a, b], the first one closed"}
