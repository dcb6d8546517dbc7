package message

import "fmt"

// Type is a message's type.
type Type uint8

// The types (FRR, ospfd/ospf_api.h). Those from 7 to 9 and above 17 are not in old releases.
const (
	TypeRegisterOpaque   Type = 1
	TypeUnregisterOpaque Type = 2
	TypeRegisterEvent    Type = 3
	TypeSyncLSDB         Type = 4
	TypeOriginate        Type = 5
	TypeDelete           Type = 6
	TypeSyncReachable    Type = 7
	TypeSyncInterfaces   Type = 8
	TypeSyncNeighbors    Type = 9
	TypeReply            Type = 10
	TypeReady            Type = 11
	TypeLSAUpdate        Type = 12
	TypeLSADelete        Type = 13
	TypeNewInterface     Type = 14
	TypeDelInterface     Type = 15
	TypeInterfaceState   Type = 16
	TypeNeighborState    Type = 17
	TypeReachable        Type = 18
	TypeSyncRouterID     Type = 19
	TypeRouterID         Type = 20
)

var typeNames = map[Type]string{
	TypeRegisterOpaque: "register-opaque-type", TypeUnregisterOpaque: "unregister-opaque-type", TypeRegisterEvent: "register-event",
	TypeSyncLSDB: "sync-lsdb", TypeOriginate: "originate-request", TypeDelete: "delete-request", TypeSyncReachable: "sync-reachable",
	TypeSyncInterfaces: "sync-ism", TypeSyncNeighbors: "sync-nsm", TypeReply: "reply", TypeReady: "ready-notify",
	TypeLSAUpdate: "lsa-update-notify", TypeLSADelete: "lsa-delete-notify", TypeNewInterface: "new-if", TypeDelInterface: "del-if",
	TypeInterfaceState: "ism-change", TypeNeighborState: "nsm-change", TypeReachable: "reachable-change",
	TypeSyncRouterID: "sync-router-id", TypeRouterID: "router-id-change",
}

// String gives the name as FRR spells it.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type-%d", uint8(t))
}

// Code is how the daemon answers a request.
type Code int8

// The codes (FRR, ospfd/ospf_api.h).
const (
	OK                  Code = 0
	NoSuchInterface     Code = -1
	NoSuchArea          Code = -2
	NoSuchLSA           Code = -3
	IllegalLSAType      Code = -4
	OpaqueInUse         Code = -5
	OpaqueNotRegistered Code = -6
	NotReady            Code = -7
	NoMemory            Code = -8
	OtherError          Code = -9
	Undefined           Code = -10
)

var codeNames = [...]string{"OK", "no such interface", "no such area", "no such LSA", "illegal LSA type", "opaque type in use",
	"opaque type not registered", "not ready", "no memory", "other error", "undefined"}

// String says the code in words.
func (c Code) String() string {
	if c <= 0 && int(-c) < len(codeNames) {
		return codeNames[-c]
	}
	return fmt.Sprintf("code %d", int8(c))
}
