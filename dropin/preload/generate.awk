# Generates from symbols.txt, for LIBRARY (empty: both) and FORM:
#   functions   FUNCTION(name) for each row of the engine and of the preloaded library, included by the assembly and by resolve.c
#   versions    a linker version script with the names of LIBRARY
/^#/ || NF != 4 || (LIBRARY != "" && $1 != LIBRARY) { next }
FORM == "functions" && $4 ~ /^(engine|preload)$/ { print "FUNCTION(" $3 ")" }
FORM == "versions" && $2 !~ /PRIVATE/ {
	if (!($2 in names)) { order[++n] = $2 }
	names[$2] = names[$2] "\t\t" $3 ";\n"
}
END {
	if (FORM != "versions") { exit }
	prefix = LIBRARY ~ /ibverbs/ ? "IBVERBS_1." : "RDMACM_1."
	last = LIBRARY ~ /ibverbs/ ? 14 : 3
	for (i = 0; i <= last; i++) { # versions without a name of ours are there as well, as in the original
		print prefix i " {"
		if (names[prefix i] != "") { printf "\tglobal:\n%s", names[prefix i] }
		if (i == 0) { print "\tlocal: *;" }
		print "}" (i > 0 ? " " prefix (i - 1) : "") ";"
	}
}
