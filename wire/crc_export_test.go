package wire

// A CRCWay is one of the ways to hash, for the tests to take whatever the
// processor and the length of the input.
type CRCWay struct {
	Name   string
	Update func(reg uint32, p []byte) uint32
}

// CRCWays are those this machine can take. First comes the one that the Sealer
// uses.
var CRCWays = []CRCWay{
	{"update", crcUpdate},
	{"standard", crcStandard},
}
