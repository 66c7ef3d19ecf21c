package wire

// A CRCWay is an implementation of the checksum, for tests on any processor and input length.
type CRCWay struct {
	Name   string
	Update func(reg uint32, p []byte) uint32
}

// CRCWays are the implementations for this machine. The first one is that of ICRC.
var CRCWays = []CRCWay{
	{"update", crcUpdate},
	{"standard", crcStandard},
}
