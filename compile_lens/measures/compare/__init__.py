"""Several captures of one function side by side: what differs by Python line, and why.

What of two captures is the same is asked of ``difference/``, as ``diff`` does; here it is read for several at once.
"""
