package lab

// Keys of containerlab's schema (schemas/clab.schema.json of srl-labs/containerlab) by what this
// package does with them.

// honouredNodeKeys are the node keys with an effect here.
var honouredNodeKeys = map[string]bool{
	"kind": true, "image": true, "entrypoint": true, "cmd": true, "exec": true, "binds": true,
	"env": true, "sysctls": true, "network-mode": true, "startup-delay": true, "user": true,
}

// ignoredNodeKeys are valid for containerlab and mean nothing on namespaces, with the reason.
var ignoredNodeKeys = map[string]string{
	"SANs":              "no certificates are issued",
	"aliases":           "there is no DNS",
	"auto-remove":       "nodes are always removed",
	"cap-add":           "programs run as root",
	"certificate":       "no certificates are issued",
	"cpu":               "no resource limits are set",
	"cpu-set":           "no resource limits are set",
	"devices":           "programs see the machine's devices",
	"dns":               "there is no DNS",
	"group":             "only used to draw graphs",
	"healthcheck":       "there is no container runtime",
	"image-pull-policy": "no image is pulled",
	"kernel":            "there is no container runtime",
	"labels":            "there is no container runtime",
	"license":           "no kind here needs one",
	"memory":            "no resource limits are set",
	"mgmt-ipv4":         "there is no management network",
	"mgmt-ipv6":         "there is no management network",
	"mgmt_ipv4":         "there is no management network",
	"mgmt_ipv6":         "there is no management network",
	"ports":             "there is no management network",
	"position":          "only used to draw graphs",
	"publish":           "there is no management network",
	"restart-policy":    "programs are never restarted",
	"runtime":           "there is no container runtime",
	"sandbox":           "there is no container runtime",
	"shm-size":          "no resource limits are set",
	"type":              "the kinds linux and bridge have no types",
}

// refusedNodeKeys are valid for containerlab and would change what a node does, but are not built.
var refusedNodeKeys = map[string]string{
	"components":              "only for chassis kinds",
	"config":                  "the configuration engine is not available; bind a file instead",
	"enforce-startup-config":  "bind a file instead",
	"env-files":               "write the variables under env",
	"extras":                  "only for other kinds",
	"stages":                  "nodes start in the order of the file; use startup-delay",
	"startup-config":          "bind a file instead",
	"suppress-startup-config": "bind a file instead",
	"wait-for":                "nodes start in the order of the file; use startup-delay",
}

// ignoredTopKeys and ignoredLinkKeys: as ignoredNodeKeys, for the file and for a link.
var ignoredTopKeys = map[string]string{
	"mgmt":     "there is no management network",
	"prefix":   "namespaces are always named pncd-<lab>-<node>",
	"settings": "no certificates are issued",
	"debug":    "there is no container runtime",
}

var ignoredLinkKeys = map[string]string{
	"labels": "only used to draw graphs",
	"vars":   "the configuration engine is not available",
}

// kinds are the node kinds that can be realised.
const (
	kindLinux  = "linux"
	kindBridge = "bridge"
)

// defaultMTU is containerlab's default for a link.
const defaultMTU = 9500
