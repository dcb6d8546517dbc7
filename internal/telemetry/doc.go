// Package telemetry shows the daemon to an operator's tools: Prometheus metrics, liveness and readiness,
// profiles, and the log.
//
// It reads plain snapshots through the interfaces Source and Readiness, so that no part of the daemon
// needs to know Prometheus, and this package needs to know no part of the daemon. Snapshots are read at
// scrape time; nothing here runs on a packet's path. It is not for evidence: one decision and its reason
// are records, read through the gRPC API.
//
// Metric names follow the Prometheus conventions (https://prometheus.io/docs/practices/naming/): base
// units, _total on counters, one name per thing with labels for its parts.
package telemetry
