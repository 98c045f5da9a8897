"""The API group, and every label, annotation and field manager that kvplan reads or writes."""

from typing import Final, Literal

GROUP: Final = "kvplan.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final[Literal["kvplan.dev/v1alpha1"]] = "kvplan.dev/v1alpha1"
CATEGORY: Final = "kvplan"

FLEET_LABEL: Final = "kvplan.dev/fleet"
"""On RequestClasses, RoutingPlans, pods and Deployments: the name of their fleet."""
CONFIGURATION_LABEL: Final = "kvplan.dev/configuration"
"""On pods and Deployments: the configuration of the group."""
PLAN_LABEL: Final = "kvplan.dev/plan"
"""On Deployments: the RoutingPlan that last changed them."""
ORIGIN_LABEL: Final = "kvplan.dev/origin"
"""On RoutingPlans: who made the plan; absent means the planner."""
ORIGIN_USER: Final = "user"
"""Value of the origin label for plans that people write."""

FIELD_MANAGER: Final = "kvplan"
"""Field manager of everything the operator writes."""
APPROVAL_FIELD_MANAGER: Final = "kvplan-approve"
"""Field manager of ``kvplan approve``, which alone writes ``spec.acceptedPlan``."""

GPU_PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
"""On nodes: the GPU product, as GPU feature discovery writes it."""
