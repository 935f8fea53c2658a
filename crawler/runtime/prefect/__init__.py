"""The Prefect server and its worker: started, asked, cleared of what is dead. Importing prefect takes a second."""
