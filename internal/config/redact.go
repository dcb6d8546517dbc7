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
		isis.Level1Keys, isis.Level2Keys = redactKeys(isis.Level1Keys, plainKey), redactKeys(isis.Level2Keys, plainKey)
		isis.Circuits = append([]ISISCircuit(nil), isis.Circuits...)
		for i := range isis.Circuits {
			isis.Circuits[i].Keys = redactKeys(isis.Circuits[i].Keys, plainKey)
		}
		shown.ISIS = &isis
	}
	shown.OSPFv2, shown.OSPFv3 = c.OSPFv2.redacted(), c.OSPFv3.redacted()
	b, err := yaml.Marshal(&shown)
	return string(b), err
}

func (o *OSPF) redacted() *OSPF {
	if o == nil {
		return nil
	}
	shown := *o
	shown.Links = append([]OSPFLink(nil), o.Links...)
	for i := range shown.Links {
		shown.Links[i].Keys = redactKeys(shown.Links[i].Keys, func(k *OSPFKey) *Key { return &k.Key })
	}
	return &shown
}

func plainKey(k *Key) *Key { return k }

// redactKeys hides the secrets of a list; of gives the part of its elements that holds them.
func redactKeys[K any](keys []K, of func(*K) *Key) []K {
	out := append([]K(nil), keys...)
	for i := range out {
		if k := of(&out[i]); k.Password != "" {
			k.Password = redacted
		}
	}
	return out
}
