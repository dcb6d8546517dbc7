// Package apitest offers a server of package api with backends that tests can look into and change: a real
// route table and recorder with a few entries, and fakes for the rest. It is for tests of the server and
// of its clients only.
package apitest
