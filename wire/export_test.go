package wire

// The parsers of the extended headers, which are read by the methods of Packet.
var (
	ParseAETH         = parseAETH
	ParseAtomicAckETH = parseAtomicAckETH
	ParseAtomicETH    = parseAtomicETH
	ParseFETH         = parseFETH
	ParseIETH         = parseIETH
	ParseRETH         = parseRETH
	ParseSackETH      = parseSackETH
)
