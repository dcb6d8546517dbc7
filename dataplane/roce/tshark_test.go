package roce

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writePcap writes raw IP packets as a capture file (link type 101).
func writePcap(t *testing.T, packets ...[]byte) string {
	t.Helper()
	le := binary.LittleEndian
	var b []byte
	for _, v := range []uint32{0xA1B2C3D4, 4<<16 | 2, 0, 0, 65535, 101} {
		b = le.AppendUint32(b, v)
	}
	for i, p := range packets {
		for _, v := range []uint32{uint32(i), 0, uint32(len(p)), uint32(len(p))} {
			b = le.AppendUint32(b, v)
		}
		b = append(b, p...)
	}
	name := filepath.Join(t.TempDir(), "cnp.pcap")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func tshark(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark")
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v: %s", err, stderr.String())
	}
	return string(out)
}

func TestTsharkDecodesTheCNPAsInfiniBand(t *testing.T) {
	var packets [][]byte
	for _, c := range []CNP{
		{Src: v4a, Dst: v4b, SrcPort: 49160, TOS: DefaultCNPTOS, IPID: 7, DestQP: 0x118},
		{Src: v6a, Dst: v6b, SrcPort: 49160, TOS: DefaultCNPTOS, DestQP: 0x118},
	} {
		b, err := AppendCNP(nil, &c)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, b)
	}
	file := writePcap(t, packets...)
	out := tshark(t, "-r", file, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=;",
		"-e", "frame.protocols", "-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.vendor",
		"-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e", "_ws.malformed", "-e", "_ws.expert.severity")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("tshark printed %q", out)
	}
	for i, line := range lines {
		f := strings.Split(line, ";")
		// tshark 4.0 has no name for opcode 0x81 and shows what follows the BTH as one field.
		rest := hex.EncodeToString(packets[i][len(packets[i])-cnpReserved-ICRCLen:])
		if len(f) != 8 || !strings.HasSuffix(f[0], ":udp:infiniband") || f[1] != "129" || f[2] != "0x000118" ||
			!strings.HasSuffix(f[3], rest) || f[6] != "" {
			t.Errorf("packet %d: %q", i, line)
		}
		const good, notPresent = "1", "3"
		if i == 0 && (f[4] != good || f[5] != notPresent) || i == 1 && f[5] != good {
			t.Errorf("packet %d: checksum states %q", i, line)
		}
	}
	if text := tshark(t, "-r", file, "-V"); strings.Contains(text, "Malformed") || strings.Count(text, "InfiniBand") < 2 {
		t.Errorf("tshark -V:\n%s", text)
	}
}

func TestTsharkReadsTheBuiltREQ(t *testing.T) {
	c := cmSamples()[0]
	ip := build(t, PacketSpec{
		Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 49152,
		BTH: BTH{Opcode: OpcodeUDSendOnly, PKey: DefaultPKey, DestQP: QP1}, Body: mad(t, &c),
	})
	out := tshark(t, "-r", writePcap(t, ip), "-T", "fields", "-E", "separator=;",
		"-e", "infiniband.mad.attributeid", "-e", "infiniband.cm.req.localqpn", "-e", "infiniband.cm.req.startpsn", "-e", "infiniband.cm.req", "-e", "_ws.malformed")
	f := strings.Split(strings.TrimRight(out, "\n"), ";")
	if len(f) != 5 || f[0] != "0x0010" || !strings.EqualFold(f[1], "0x0000dc") || !strings.EqualFold(f[2], "0xabcdef") || f[3] != "0x11223344" || f[4] != "" {
		t.Errorf("tshark printed %q", out)
	}
}
