"""The methods of other papers, for comparison; METHODS lists them beside our own."""
