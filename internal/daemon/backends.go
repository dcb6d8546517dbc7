package daemon

import (
	"strings"

	"pncd/api"
	pncv1 "pncd/api/pnc/v1"
	"pncd/internal/config"
)

// backends connects the API to the parts.
func (d *Daemon) backends() api.Backends {
	b := api.Backends{
		Table:      d.table,
		Advertiser: advertiser{d},
		Flows:      flowsBackend{d},
		Records:    d.recorder,
		Node:       d,
		NRPs:       nrpBackend{d},
		Reports:    reportsBackend{d},
	}
	if d.isis != nil {
		b.ISIS = d.isis
	}
	if len(d.ospf) > 0 || d.ospfapi != nil {
		b.OSPF = ospfBackend{d}
	}
	return b
}

// partStateName is the name of a part's state in metrics, as in ready.
func partStateName(s pncv1.PartState) string { return enumName(s.String(), "PART_STATE_") }

// enumName is the name of an enum's value in output: without its prefix, as in nft-table.
func enumName(value, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(value, prefix)), "_", "-")
}

func tlsSettings(t config.TLS) *api.TLSConfig {
	if t.Cert == "" && t.Key == "" {
		return nil
	}
	return &api.TLSConfig{CertFile: t.Cert, KeyFile: t.Key, ClientCAFile: t.ClientCA}
}
