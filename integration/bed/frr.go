package bed

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

var versionRule = regexp.MustCompile(`FRRouting (\d+)\.(\d+)(\S*)`)

// FRRVersion is what a node's FRR says of itself, as in 8.4.4.
func (b *Bed) FRRVersion(ctx context.Context) (string, error) {
	out, err := b.Exec(ctx, Reflector, "vtysh", "-c", "show version")
	if err != nil {
		return "", err
	}
	m := versionRule.FindStringSubmatch(string(out))
	if m == nil {
		return "", fmt.Errorf("FRR does not say its version: %q", out)
	}
	return m[1] + "." + m[2] + m[3], nil
}

// sendNHC asks FRR 10.4 and newer, which removes the NHC attribute by default, to pass it on. Older
// versions pass unknown attributes on and don't know the command.
func (b *Bed) sendNHC(ctx context.Context) error {
	v, err := b.FRRVersion(ctx)
	if err != nil {
		return err
	}
	m := versionRule.FindStringSubmatch("FRRouting " + v)
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major < 10 || major == 10 && minor < 4 {
		return nil
	}
	for node, neighbors := range map[string][]string{
		Reflector: {"V4", "V6"},
		Router:    {"10.255.0.2", "fd00:255::2"},
	} {
		argv := []string{"vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", AS)}
		for _, n := range neighbors {
			argv = append(argv, "-c", "neighbor "+n+" send-nexthop-characteristics")
		}
		if _, err := b.Exec(ctx, node, argv...); err != nil {
			return err
		}
	}
	return nil
}
