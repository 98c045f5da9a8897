//! What the gRPC health protocol answers, by service name.
//!
//! `liveness` stays up for as long as the process runs; all other names, `""` included, follow readiness. Mirrors
//! `kvplan_router.transport.health`.

use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::server::{HealthReporter, health_reporter};

const LIVENESS: &str = "liveness";
const FOLLOW_READINESS: [&str; 3] = ["", "readiness", "envoy.service.ext_proc.v3.ExternalProcessor"];

/// The service, NOT_SERVING, and what changes it.
pub async fn health_service() -> (HealthReporter, HealthServer<impl Health>) {
    let (reporter, service) = health_reporter();
    reporter.set_service_status(LIVENESS, ServingStatus::Serving).await;
    set_serving(&reporter, false).await;
    (reporter, service)
}

/// Answer SERVING or NOT_SERVING, and tell those who watch.
pub async fn set_serving(reporter: &HealthReporter, serving: bool) {
    let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    for name in FOLLOW_READINESS {
        reporter.set_service_status(name, status).await;
    }
}
