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
		shown.BGP = &bgp
	}
	b, err := yaml.Marshal(&shown)
	return string(b), err
}
