# Generates from symbols.txt, for FORM:
#   functions   FUNCTION(name) for each row of the engine and of the preloaded library, included by the assembly and by resolve.c
#   versions    a linker version script of libibverbs.so.1
/^#/ || NF != 3 { next }
FORM == "functions" && $3 ~ /^(engine|preload)$/ { print "FUNCTION(" $2 ")" }
FORM == "versions" && $1 !~ /PRIVATE/ { names[$1] = names[$1] "\t\t" $2 ";\n" }
END {
	if (FORM != "versions") { exit }
	prefix = "IBVERBS_1."
	last = 14
	for (i = 0; i <= last; i++) { # versions without a name of ours are there as well, as in the original
		print prefix i " {"
		if (names[prefix i] != "") { printf "\tglobal:\n%s", names[prefix i] }
		if (i == 0) { print "\tlocal: *;" }
		print "}" (i > 0 ? " " prefix (i - 1) : "") ";"
	}
}
