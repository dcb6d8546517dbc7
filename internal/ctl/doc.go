// Package ctl is pncctl: the command line over pncd's gRPC API.
//
// It only asks and prints: every rule is the daemon's. Tables are for people, with stable columns, times
// in UTC and queue pairs in hexadecimal; -o json and -o yaml print the API's messages by their field
// names, with every field, for programs. Commands that follow changes print one JSON object a line, or
// YAML documents.
//
// Exit statuses:
//
//	0  done, or the answer is positive
//	1  the call failed, or the answer is negative: resolve found no proxy, a flow, neighbour or
//	   advertisement that was asked for does not exist
//	2  the command line is wrong: an unknown command or flag, a missing argument, or a value that
//	   pncctl or pncd cannot accept
package ctl
