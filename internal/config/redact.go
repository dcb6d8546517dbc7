package config

import "go.yaml.in/yaml/v3"

// redacted stands for a secret in what is shown.
const redacted = "(secret)"

// Redacted renders the configuration, defaults filled in, as YAML without secrets.
func (c *Config) Redacted() (string, error) {
	shown := *c
	if c.BGP != nil {
		bgp := *c.BGP
		bgp.Neighbors = append([]Neighbor(nil), c.BGP.Neighbors...)
		for i := range bgp.Neighbors {
			if bgp.Neighbors[i].Password != "" {
				bgp.Neighbors[i].Password = redacted
			}
		}
		bgp.ListenRanges = append([]ListenRange(nil), c.BGP.ListenRanges...)
		for i := range bgp.ListenRanges {
			if bgp.ListenRanges[i].Password != "" {
				bgp.ListenRanges[i].Password = redacted
			}
		}
		shown.BGP = &bgp
	}
	if c.ISIS != nil {
		isis := *c.ISIS
		isis.Level1Keys, isis.Level2Keys = redactKeys(isis.Level1Keys), redactKeys(isis.Level2Keys)
		isis.Circuits = append([]ISISCircuit(nil), isis.Circuits...)
		for i := range isis.Circuits {
			isis.Circuits[i].Keys = redactKeys(isis.Circuits[i].Keys)
		}
		shown.ISIS = &isis
	}
	b, err := yaml.Marshal(&shown)
	return string(b), err
}

func redactKeys(keys []ISISKey) []ISISKey {
	out := append([]ISISKey(nil), keys...)
	for i := range out {
		if out[i].Password != "" {
			out[i].Password = redacted
		}
	}
	return out
}
