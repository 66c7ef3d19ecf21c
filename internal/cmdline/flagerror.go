package cmdline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// valueHints says what a flag takes, by the type of its value (pflag.Value.Type), where the
// error has the words of packages strconv and time. Other values say so in their errors.
var valueHints = map[string]string{
	"int": "a whole number", "int64": "a whole number", "intSlice": "whole numbers with commas between",
	"uint": "a whole number from 0", "uint8": "a whole number from 0 to 255", "uintSlice": "whole numbers from 0 with commas between",
	"float64": "a number", "bool": "true or false", "duration": "a time such as 10s or 1m30s",
}

// FlagError returns the text of a mistake in the flags of c, with the flag, the value
// refused, and what the flag takes.
func FlagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
	}
	flag := invalid.GetFlag()
	name := "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	var number *strconv.NumError
	want, known := valueHints[flag.Value.Type()]
	if known && (errors.As(err, &number) || strings.HasPrefix(invalid.Unwrap().Error(), "time: ")) {
		return fmt.Errorf("%s: %q: want %s", name, invalid.GetValue(), want)
	}
	return fmt.Errorf("%s: %w", name, invalid.Unwrap())
}
