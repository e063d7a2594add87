// Neither once nor tidy.
	int x;
// FIXME
