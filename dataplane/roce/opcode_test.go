package roce

import "testing"

func TestOpcodePredicatesFollowTheTable(t *testing.T) {
	rc := func(ops ...int) map[int]bool {
		m := make(map[int]bool)
		for _, o := range ops {
			for _, class := range []int{0, 2, 5} {
				m[class<<5|o] = true
			}
			if o <= 0x0B {
				m[1<<5|o] = true
			}
			if o == 4 || o == 5 {
				m[3<<5|o] = true
			}
		}
		return m
	}
	requests := rc(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x0C, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D)
	requests[0x55] = true // RD RESYNC
	for _, tt := range []struct {
		name string
		is   func(Opcode) bool
		want map[int]bool
	}{
		{"IsRequest", Opcode.IsRequest, requests},
		{"IsLastOrOnly", Opcode.IsLastOrOnly, rc(2, 3, 4, 5, 8, 9, 10, 11, 0x16, 0x17, 0x1C, 0x1D)},
		{"IsAckable", Opcode.IsAckable, rc(2, 3, 4, 5, 8, 9, 10, 11, 0x0C, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D)},
		{"IsReadRequest", Opcode.IsReadRequest, rc(0x0C)},
		{"IsAtomicRequest", Opcode.IsAtomicRequest, rc(0x13, 0x14)},
		{"IsReadResponse", Opcode.IsReadResponse, rc(0x0D, 0x0E, 0x0F, 0x10)},
		{"IsReadResponseFirst", Opcode.IsReadResponseFirst, rc(0x0D)},
		{"IsReadResponseLast", Opcode.IsReadResponseLast, rc(0x0F)},
		{"IsReadResponseOnly", Opcode.IsReadResponseOnly, rc(0x10)},
		{"IsAck", Opcode.IsAck, rc(0x11)},
		{"IsAtomicAck", Opcode.IsAtomicAck, rc(0x12)},
		{"IsResponse", Opcode.IsResponse, rc(0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12)},
		{"HasAETH", Opcode.HasAETH, rc(0x0D, 0x0F, 0x10, 0x11, 0x12)},
		{"IsCNP", Opcode.IsCNP, map[int]bool{0x81: true}},
	} {
		for o := range 256 {
			if got := tt.is(Opcode(o)); got != tt.want[o] {
				t.Errorf("%s(0x%02x) = %v", tt.name, o, got)
			}
		}
	}
}

func TestOpcodeSplitsIntoTransportAndOperation(t *testing.T) {
	for o := range 256 {
		op := Opcode(o)
		if int(op.Transport())<<5|int(op.Op()) != o {
			t.Errorf("0x%02x: transport %d, operation %d", o, op.Transport(), op.Op())
		}
	}
	for o, want := range map[Opcode]string{
		0x0A: "RC WRITE_ONLY", 0x24: "UC SEND_ONLY", 0x64: "UD SEND_ONLY", 0x81: "CNP", 0x4C: "RD/DC READ_REQUEST",
		0xB1: "XRC ACK", 0x31: "UC 0x31", 0xC0: "vendor-6 0xc0", 0x1F: "RC 0x1f",
	} {
		if got := o.String(); got != want {
			t.Errorf("0x%02x is %q, want %q", uint8(o), got, want)
		}
	}
}
