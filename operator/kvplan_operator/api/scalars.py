"""Bounded numbers and strings of the API: every integer has a range, every string a length and a pattern.

Kubernetes charges CEL rules by the declared bounds, and JSON numbers stay integers, so each unit has one
type here. Milli means thousandths. Integers are strict: ``true``, ``"5"`` and ``5.0`` are refused.
"""

from typing import Annotated

from pydantic import Field, StrictBool

Flag = StrictBool

Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
"""Things counted: 0 to a million."""
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""Things counted, at least one."""
GroupCount = Annotated[int, Field(strict=True, ge=0, le=1_024)]
"""Groups of one configuration."""
BigCount = Annotated[int, Field(strict=True, ge=0, le=9_007_199_254_740_991)]
"""Counters and generations, up to the largest integer that JSON carries exactly."""
ObservedGeneration = Annotated[int, Field(strict=True, ge=-1, le=9_007_199_254_740_991)]
"""A generation; −1 before anything was observed."""
Parallelism = Annotated[int, Field(strict=True, ge=1, le=64)]
"""GPUs of one stage, or stages."""
Milli = Annotated[int, Field(strict=True, ge=0, le=1_000)]
"""A share in thousandths."""
PositiveMilli = Annotated[int, Field(strict=True, ge=1, le=1_000)]
"""A share in thousandths, above none."""
RatioMilli = Annotated[int, Field(strict=True, ge=0, le=100_000)]
"""A ratio in thousandths, up to a hundred."""
PositiveRatio = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
"""A whole ratio, one to a million."""
LargeMilli = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
"""A number above one in thousandths."""
HistoryLimit = Annotated[int, Field(strict=True, ge=1, le=100)]
"""Old objects to keep."""
Weight = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
"""A cost in units of one wasted KV token."""
Priority = Annotated[int, Field(strict=True, ge=-1_000_000, le=1_000_000)]
"""Higher goes first."""
SignedMilli = Annotated[int, Field(strict=True, ge=-1_000_000, le=1_000_000)]
"""A change in thousandths, either way."""
CostMilli = Annotated[int, Field(strict=True, ge=0, le=9_007_199_254_740_991)]
"""A cost per second in thousandths of one wasted KV token."""
Tokens = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
"""KV tokens or text tokens."""
PositiveTokens = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
"""At least one token."""
RadiusTokens = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]
"""A shift of output lengths in tokens."""
BlockTokens = Annotated[int, Field(strict=True, ge=1, le=1_024)]
"""Tokens of one KV block."""
Seconds = Annotated[int, Field(strict=True, ge=0, le=31_536_000)]
"""0 seconds to a year."""
PositiveSeconds = Annotated[int, Field(strict=True, ge=1, le=31_536_000)]
"""1 second to a year."""
TimeLimitSeconds = Annotated[int, Field(strict=True, ge=1, le=600)]
"""1 second to 10 minutes."""
WindowSeconds = Annotated[int, Field(strict=True, ge=60, le=86_400)]
"""1 minute to a day."""
Milliseconds = Annotated[int, Field(strict=True, ge=0, le=31_536_000_000)]
"""0 milliseconds to a year."""
PositiveMilliseconds = Annotated[int, Field(strict=True, ge=1, le=31_536_000_000)]
"""1 millisecond to a year."""
QueueMilliseconds = Annotated[int, Field(strict=True, ge=0, le=3_600_000)]
"""0 milliseconds to an hour: as long as a router lets a request wait."""
Microseconds = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000)]
"""1 microsecond to a thousand seconds."""
RequestsPerSecondMilli = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
"""A rate in thousandths of a request per second, up to a million a second."""
PrefixBytes = Annotated[int, Field(strict=True, ge=1, le=65_536)]
"""Leading bytes of a prompt, up to 64 KiB."""
Bytes = Annotated[int, Field(strict=True, ge=1, le=1_000_000_000_000_000)]
"""1 byte to a petabyte."""

DnsLabel = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""A name of lower-case letters, digits and hyphens."""
ConfigurationName = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""Short enough for slots and Deployments that are named after it."""
FleetName = Annotated[str, Field(min_length=1, max_length=52, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""Short enough that a plan's name, ``<fleet>-<10 hex digits>``, is a label value."""
_SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
OBJECT_NAME_PATTERN = f"^{_SUBDOMAIN}$"
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=OBJECT_NAME_PATTERN)]
"""The name of any Kubernetes object."""
LABEL_KEY_PATTERN = f"^({_SUBDOMAIN}/)?[A-Za-z0-9]([-._A-Za-z0-9]{{0,61}}[A-Za-z0-9])?$"
QualifiedName = Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY_PATTERN)]
"""A label key or resource name, with or without a DNS prefix."""
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$")]
"""The value of a label; may be empty."""
HeaderName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-z0-9]([-_a-z0-9]*[a-z0-9])?$")]
"""An HTTP header name in lower case."""
JsonFieldName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z_][-_A-Za-z0-9]*$")]
"""A field at the top of a JSON body."""
PresetName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$")]
"""The name of an entry in the hardware or model data that kvplan ships."""
FlagName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""An engine flag without its leading hyphens."""
FlagValue = Annotated[str, Field(max_length=1024, pattern=r"^[^\r\n]*$")]
"""The value of an engine flag, on one line."""
ModelName = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9]([-._/:A-Za-z0-9]*)$")]
"""A model as the engine names it."""
Version = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9]+\.[0-9]+(\.[0-9A-Za-z.+-]+)?$")]
"""A version number such as 0.32.0."""
Url = Annotated[str, Field(min_length=1, max_length=512, pattern=r'^https?://[!"$-.0->A-~]+[!-?A-~]*$')]
"""An HTTP address without credentials, in printable ASCII."""
TimeOfDay = Annotated[str, Field(min_length=5, max_length=5, pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
"""HH:MM, 24 hours."""
TimeZone = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z]+([/_+-][A-Za-z0-9]+)*$")]
"""A name of the tz database."""
SERIES_LABEL_PATTERN = "^[a-zA-Z_][a-zA-Z0-9_]*$"
"""The name of a label of a Prometheus series."""
MetricName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
"""The name of a Prometheus metric."""
ConfigMapKey = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
"""A key of a ConfigMap."""
Reason = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
"""A CamelCase word for programs."""
Text = Annotated[str, Field(max_length=1024)]
"""A sentence for people."""
ShortText = Annotated[str, Field(min_length=1, max_length=256)]
"""A value that another system defines."""
Digest = Annotated[str, Field(min_length=64, max_length=64, pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hex."""
_DATE = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
Timestamp = Annotated[str, Field(min_length=20, max_length=27, pattern=f"^{_DATE}T{_TIME}Z$")]
"""A time in UTC, RFC 3339. Without ``format: date-time``: with it the API server takes a list for a string."""
