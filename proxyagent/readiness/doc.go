// Package readiness decides whether the capability of a sender prefix is announced.
//
// Routing says that a node is a proxy; whether it can translate now is another question. This package
// takes what is wrong now, prefix by prefix, and gives what to announce: a prefix that is not ready is
// withdrawn after one hold-down and announced again after another, and one that comes and goes is damped.
// It also has the measures behind the conditions: the share that was lost lately, and traffic in both
// directions.
//
// It is pure: conditions and the time go in, decisions, reasons and the time of the next look come out.
// It does not find out what is wrong, and announces nothing.
package readiness
