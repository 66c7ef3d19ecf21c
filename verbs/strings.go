package verbs

import (
	"math/bits"
	"strconv"
	"strings"
)

// word is what an enumeration says about one of its values: the name of the
// constant in libibverbs without its prefix, and a sentence in plain words.
type word struct{ name, meaning string }

// wordOf looks v up in a table that its values index.
func wordOf[T ~uint8](table []word, v T, typ string) word {
	if int(v) < len(table) && table[v].name != "" {
		return table[v]
	}
	return unknown(typ, strconv.FormatUint(uint64(v), 10))
}

// flagWord looks up a set of flags in a table with one entry a bit. The names
// are joined by "|" and the meanings by "; ". One flag alone costs no
// allocation.
func flagWord[T ~uint8 | ~uint32](table []word, set T, typ string) word {
	if set == 0 {
		return word{"0", "nothing"}
	}
	var names, meanings []string
	var strange uint64
	for rest := uint64(set); rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros64(rest)
		if bit >= len(table) || table[bit].name == "" {
			strange |= 1 << bit
			continue
		}
		if uint64(set) == 1<<bit {
			return table[bit]
		}
		names = append(names, table[bit].name)
		meanings = append(meanings, table[bit].meaning)
	}
	if strange != 0 {
		w := unknown(typ, "0x"+strconv.FormatUint(strange, 16))
		names = append(names, w.name)
		meanings = append(meanings, w.meaning)
	}
	return word{strings.Join(names, "|"), strings.Join(meanings, "; ")}
}

func unknown(typ, value string) word {
	name := typ + "(" + value + ")"
	return word{name, name + " is not a value that the verbs define"}
}
