// Package archtest holds the rules of docs/architecture.md about who may import whom, as a test over all
// packages of the module. It has no code of its own.
package archtest
