"""What fills the centre of the window: first screen, Live, Profile, History."""
