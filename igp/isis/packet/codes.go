package packet

import "strconv"

// PDUType is the type of a PDU, the low five bits of its octet (ISO 10589 clause 9).
type PDUType uint8

// The PDU types.
const (
	L1LANHello PDUType = 15
	L2LANHello PDUType = 16
	P2PHello   PDUType = 17
	L1LSP      PDUType = 18
	L2LSP      PDUType = 20
	L1CSNP     PDUType = 24
	L2CSNP     PDUType = 25
	L1PSNP     PDUType = 26
	L2PSNP     PDUType = 27
)

var pduNames = map[PDUType]string{
	L1LANHello: "L1 LAN hello", L2LANHello: "L2 LAN hello", P2PHello: "point-to-point hello",
	L1LSP: "L1 LSP", L2LSP: "L2 LSP", L1CSNP: "L1 CSNP", L2CSNP: "L2 CSNP", L1PSNP: "L1 PSNP", L2PSNP: "L2 PSNP",
}

// String gives the name, or the number of one that is not known.
func (t PDUType) String() string {
	if n, ok := pduNames[t]; ok {
		return n
	}
	return "PDU type " + strconv.Itoa(int(t))
}

// TLV types (IANA registry "IS-IS Top-Level TLV Codepoints").
const (
	TLVAreas              = 1   // ISO 10589
	TLVISNeighborsLAN     = 6   // ISO 10589
	TLVPadding            = 8   // ISO 10589
	TLVLSPEntries         = 9   // ISO 10589
	TLVAuthentication     = 10  // ISO 10589, RFC 5304, RFC 5310
	TLVPurgeOriginator    = 13  // RFC 6232
	TLVLSPBufferSize      = 14  // ISO 10589
	TLVExtendedISReach    = 22  // RFC 5305
	TLVProtocolsSupported = 129 // RFC 1195
	TLVIPv4Interfaces     = 132 // RFC 1195
	TLVTERouterID         = 134 // RFC 5305
	TLVExtendedIPReach    = 135 // RFC 5305
	TLVDynamicHostname    = 137 // RFC 5301
	TLVIPv6TERouterID     = 140 // RFC 6119
	TLVRestart            = 211 // RFC 8706
	TLVMTISReach          = 222 // RFC 5120
	TLVMultiTopology      = 229 // RFC 5120
	TLVIPv6Interfaces     = 232 // RFC 5308
	TLVMTIPReach          = 235 // RFC 5120
	TLVIPv6Reach          = 236 // RFC 5308
	TLVMTIPv6Reach        = 237 // RFC 5120
	TLVThreeWay           = 240 // RFC 5303
	TLVRouterCapability   = 242 // RFC 7981
)

// Sub-TLV types of prefixes (IANA registry "IS-IS Sub-TLVs for TLVs Advertising Prefix Reachability").
const (
	SubTLVTag32              = 1  // RFC 5130
	SubTLVTag64              = 2  // RFC 5130
	SubTLVPrefixSID          = 3  // RFC 8667
	SubTLVPrefixAttributes   = 4  // RFC 7794
	SubTLVSRv6EndSID         = 5  // RFC 9352
	SubTLVIPv4SourceRouterID = 11 // RFC 7794
	SubTLVIPv6SourceRouterID = 12 // RFC 7794
	SubTLVBIER               = 32 // RFC 8401
)

// Bits of the Prefix Attribute Flags, 0 being the most significant of the first octet.
const (
	FlagExternal     = 0 // RFC 7794
	FlagReadvertised = 1 // RFC 7794
	FlagNode         = 2 // RFC 7794
	FlagEntropyLabel = 3 // RFC 9088
	FlagAnycast      = 4 // RFC 9352
	// FlagProxy is the P flag's bit in draft-xiao-fann-fast-cnp-with-proxy: unassigned, our default.
	FlagProxy = 7
)

// Network layer protocol identifiers in TLV 129.
const (
	NLPIDIPv4 = 0xCC // RFC 1195
	NLPIDIPv6 = 0x8E // RFC 5308
)

// MaxMetric is the greatest prefix metric that SPF uses: a prefix with a greater one is known but not
// routed (RFC 5305 section 4).
const MaxMetric = 0xFE000000
