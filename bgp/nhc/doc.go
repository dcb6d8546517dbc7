// Package nhc is the codec of the BGP Next Hop Dependent Characteristics attribute (NHC, path
// attribute type 39) and of the TLVs that this module uses in it: the Proxy Node Capability (PNC)
// and the BGP Identifier.
//
// It holds the sender's rules (New, Attribute.CheckSend) and the receiver's (Parse, Attribute.Match,
// Attribute.PNC) and nothing else: it keeps no state, knows no session and decides nothing about
// routes. What becomes of a route whose attribute is disregarded is package bgp's business.
//
// Defined by draft-ietf-idr-nhc (07 of 2026), RFC 4271 sections 4.3 and 5, RFC 4760, RFC 7606
// (attribute discard) and RFC 8950. The PNC comes from
// draft-xiao-fann-fast-cnp-with-proxy-05; its code is unassigned, see DefaultPNCCode.
package nhc
